import { ApiError, type ChatState } from '@parley/shared/api.js';
import { text, type Message } from '@parley/shared/message.js';
import type { Session } from './session.js';

/** What concerns agents: who answers, the handover, the offline message and the rating. The server says what is offered. */
export class Support {
  /** Rises with each question, so that an old answer is recognised. */
  #asked = 0;
  /** The key of an offline message whose answer has not come. */
  #key = '';

  constructor(readonly session: Session) {}

  async load(): Promise<void> {
    await this.#take(() => this.session.api.chat()).catch(() => {}); // a server without it, or no chat yet
  }

  /** Asks again where a message may have changed something. */
  arrived(m: Message): void {
    const { chat } = this.session.state;
    if (m.isFromSupport ? noticeKind(m) || chat?.waiting : chat?.status === 'closed') void this.load();
  }

  handOver(): Promise<void> {
    return this.#take(() => this.session.api.handOver());
  }

  /** Leaves a message for the agents. Once it is there, it is a message as any other. */
  async leave(message: string, email: string): Promise<void> {
    this.#key ||= crypto.randomUUID();
    const m = await this.session.api.leaveMessage({ message, email }, this.#key);
    this.#key = '';
    this.session.left(m);
    await this.load();
  }

  rate(chatId: string, score: number, comment: string): Promise<void> {
    return this.#take(() => this.session.api.rate(chatId, { score, comment }));
  }

  /** The visitor does not want to rate the chat. */
  skip(chatId: string): void {
    this.session.storage.update({ q: chatId });
    this.session.dispatch({ type: 'skipped', chatId });
  }

  async #take(ask: () => Promise<ChatState>): Promise<void> {
    const run = ++this.#asked;
    const { token } = this.session.api;
    try {
      const chat = await ask();
      if (run === this.#asked && token === this.session.api.token) this.session.dispatch({ type: 'chat', chat });
    } catch (err) {
      if (err instanceof ApiError && err.status === 404 && run === this.#asked) this.session.dispatch({ type: 'chat', chat: undefined });
      throw err;
    }
  }
}

/** What a notice of the server says, in a word; empty for any other message. */
export const noticeKind = (m: Message): string => (m.isFromSupport && m.type === 'TEXT' ? text(m.data['notice']) : '');
