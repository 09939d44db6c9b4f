/** Owns the arrival of messages: each is shown once, and a new one is reported once, to the page and to the visitor. */
import { before, type Message } from '@parley/shared/message.js';
import type { Typing } from '@parley/shared/typing.js';
import type { Host } from '../host.js';
import { newestReply, type Store } from './reducer.js';
import type { Support } from './support.js';

export interface IncomingConfig {
  host: Pick<Host, 'emit'>;
  store: Store;
  support: Pick<Support, 'refreshAfter'>;
  typing: Pick<Typing, 'message'>;
  updateUnread(): void;
  /** Called for a new message from the other side. */
  onReply(m: Message): void;
}

export class Incoming {
  constructor(readonly config: IncomingConfig) {}

  /** Adds a message that has just arrived. */
  add(m: Message): void {
    const { store, typing } = this.config;
    if (store.state.messages.some((k) => k.id === m.id)) return;
    if (m.isFromSupport) typing.message(m.createdAt);
    this.show(m);
    this.#announce(m);
  }

  /** Adds a message without a report: another tab has sent it, and reports it. */
  show(m: Message): void {
    this.config.store.dispatch({ type: 'messages', messages: [m] });
    this.config.support.refreshAfter(m);
  }

  /**
   * Adds a page of the history. `more` says whether there are earlier messages, if this page tells. With `missed`, the
   * replies that follow the last known message are new to the visitor.
   */
  addPage(messages: Message[], more: boolean | undefined, missed: boolean): void {
    const { store, typing } = this.config;
    const known = new Set(store.state.messages.map((m) => m.id));
    const last = store.state.messages.at(-1);
    store.dispatch({ type: 'messages', messages, ...(more !== undefined && { more }) });
    const reply = newestReply(store.state);
    if (reply) typing.message(reply.createdAt);
    if (!missed || !last) return;
    for (const m of messages) if (!known.has(m.id) && m.isFromSupport && before(last, m)) this.#announce(m);
  }

  /** Reports a message of either side to the page. */
  report(m: Message): void {
    this.config.updateUnread();
    this.config.host.emit('message', m);
  }

  #announce(m: Message): void {
    this.report(m);
    if (m.isFromSupport) this.config.onReply(m);
  }
}
