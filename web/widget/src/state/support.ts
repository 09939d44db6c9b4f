import { type Api, ApiError, type ChatState } from '@parley/shared/api.js';
import { text, type Message } from '@parley/shared/message.js';
import type { Action, State } from './reducer.js';
import type { Storage } from './storage.js';

/** What the support features need of the session. */
export interface SupportSession {
  readonly state: State;
  readonly api: Api;
  readonly storage: Storage;
  dispatch(a: Action): void;
  /** Adds an offline message that the server has accepted. */
  addOfflineMessage(m: Message): void;
}

/**
 * Support features: chat state, handover to agents, offline message and rating. The server decides which of them are
 * offered.
 */
export class Support {
  /** Request counter; responses of outdated requests are ignored. */
  #requests = 0;
  /**
   * The last offline message without a response, and its idempotency key. The server rejects a key that is reused with
   * another body.
   */
  #unsent = { body: '', key: '' };

  constructor(readonly session: SupportSession) {}

  async load(): Promise<void> {
    // Without effect if the server lacks the endpoint, or there is no chat yet.
    await this.#update(() => this.session.api.chat()).catch(() => {});
  }

  /** Reloads the chat state if the message may have changed it: an agent's name in the bot's chat, for example. */
  refreshAfter(m: Message): void {
    const { chat, settings } = this.session.state;
    const unexpected = (chat?.control === 'agent') === (m.nameOfSender === settings?.botName);
    if (m.isFromSupport ? noticeKind(m) || chat?.waiting || unexpected : chat?.status === 'closed') void this.load();
  }

  /** Reloads the chat state if agents can change it: they take chats, hand them back, come and go. */
  refresh(): void {
    const { chat } = this.session.state;
    if (chat?.control === 'agent' || chat?.handoverOffered) void this.load();
  }

  handOver(): Promise<void> {
    return this.#update(() => this.session.api.handOver());
  }

  /** Sends an offline message to the agents. The response is added to the history like any other message. */
  async sendOfflineMessage(message: string, email: string): Promise<void> {
    const body = JSON.stringify([message, email]);
    if (this.#unsent.body !== body) this.#unsent = { body, key: crypto.randomUUID() };
    const m = await this.session.api.leaveMessage({ message, email }, this.#unsent.key);
    this.#unsent = { body: '', key: '' };
    this.session.addOfflineMessage(m);
    void this.load();
  }

  rate(chatId: string, score: number, comment: string): Promise<void> {
    return this.#update(() => this.session.api.rate(chatId, { score, comment }));
  }

  /** Skips the rating of a chat. */
  skipRating(chatId: string): void {
    this.session.storage.update({ skippedRating: chatId });
    this.session.dispatch({ type: 'skipped', chatId });
  }

  async #update(request: () => Promise<ChatState>): Promise<void> {
    const run = ++this.#requests;
    const { token } = this.session.api;
    try {
      const chat = await request();
      if (run === this.#requests && token === this.session.api.token) this.session.dispatch({ type: 'chat', chat });
    } catch (err) {
      if (err instanceof ApiError && err.status === 404 && run === this.#requests)
        this.session.dispatch({ type: 'chat', chat: undefined });
      throw err;
    }
  }
}

/** The kind of a system notice; empty for any other message. */
export const noticeKind = (m: Message): string => (m.isFromSupport && m.type === 'TEXT' ? text(m.data['notice']) : '');
