/**
 * Owns how far each side has read: the visitor's cursor, stored and sent to the server, and how far the company has
 * come.
 */
import type { Api, ReadState } from '@parley/shared/api.js';
import { object, text } from '@parley/shared/message.js';
import { newestReply, type State, type Store } from './reducer.js';
import type { Storage } from './storage.js';

export interface ReadCursorConfig {
  api: Pick<Api, 'read' | 'token'>;
  store: Store;
  storage: Storage;
  /** Sends the cursor over the socket; calls `otherwise` if that fails. */
  sendRead(messageId: string, otherwise: () => void): void;
  updateUnread(): void;
}

export class ReadCursor {
  constructor(readonly config: ReadCursorConfig) {}

  /** Moves the visitor's cursor to the newest reply, which is visible, and tells the server. */
  markRead(): void {
    const { api, store } = this.config;
    const m = newestReply(store.state);
    if (!m || !api.token) return;
    const [at, id] = store.state.read;
    if (m.createdAt < at || m.id === id) return;
    this.#move([m.createdAt, m.id]);
    this.config.updateUnread();
    this.config.sendRead(m.id, () => {
      if (api.token) void api.read(m.id).catch(() => {}); // the next cursor includes this one
    });
  }

  /** Applies the read state of a history response. */
  applyState(r: ReadState): void {
    this.#advanceTo(r.readUpTo);
    this.config.store.dispatch({ type: 'seen', upTo: r.seenUpTo });
  }

  /** Handles a `read` event: the company, or this visitor on another device, has advanced its cursor. */
  onEvent(event: unknown): void {
    const { side, messageId, upTo } = object(event);
    if (side === 'visitor') this.#advanceTo(text(messageId));
    else this.config.store.dispatch({ type: 'seen', upTo: text(upTo) });
  }

  #advanceTo(id: string): void {
    const m = id && this.config.store.state.messages.find((k) => k.id === id);
    if (m) this.#move([m.createdAt, m.id]);
  }

  #move(to: State['read']): void {
    const { store, storage } = this.config;
    const before = store.state.read;
    store.dispatch({ type: 'read', read: to });
    if (store.state.read !== before) storage.update({ read: store.state.read });
  }
}
