/** Owns what is loaded of the history: the newest pages, what an outage has left out, and the pages before them. */
import { type Api, ApiError, type ReadState } from '@parley/shared/api.js';
import type { Message } from '@parley/shared/message.js';
import type { Store } from './reducer.js';

const PAGE_SIZE = 50;
/** Limit of pages loaded to close a gap; older messages are loaded on scroll. */
const MAX_GAP_PAGES = 20;
/** A tab that becomes visible loads missed messages if its last sync is older than this. */
const SYNC_MAX_AGE = 30_000;
/** Longest delay between attempts to load the history, before jitter. */
const MAX_SYNC_DELAY = 15_000;

export interface HistoryConfig {
  api: Pick<Api, 'history' | 'chatBefore'>;
  store: Store;
  /** Returns a function that says whether the session is still the one of this call. */
  guard(): () => boolean;
  /** Loads the state of the chat, which belongs to its newest messages. */
  loadChat(): void;
  /** Takes a page; see Incoming.addPage. */
  addPage(messages: Message[], more: boolean | undefined, missed: boolean): void;
  applyReadState(r: ReadState): void;
  /** The server has answered. */
  markAvailable(): void;
  /** The server rejects the token or the site. */
  blocked(err: ApiError): void;
}

export class History {
  /** The earliest loaded chat, and whether it has earlier messages. */
  #earliest = { chatId: '', more: false };
  #syncedAt = 0;
  #failures = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly config: HistoryConfig) {}

  /** Whether the newest messages are missing: none are loaded yet, or the last attempt to load them has failed. */
  get incomplete(): boolean {
    return this.config.store.state.older === 'unknown' || this.#failures > 0;
  }

  /** Loads the newest pages until they overlap with the known messages. */
  async sync(): Promise<void> {
    const { guard, loadChat, markAvailable } = this.config;
    const isCurrent = guard();
    this.#syncedAt = Date.now();
    clearTimeout(this.#timer);
    loadChat();
    try {
      await this.#loadNewest(isCurrent);
      if (!isCurrent()) return;
      this.#failures = 0;
      markAvailable();
    } catch (err) {
      if (isCurrent() && err instanceof ApiError) this.#syncFailed(err);
    }
  }

  async #loadNewest(isCurrent: () => boolean): Promise<void> {
    const { api, store, addPage, applyReadState } = this.config;
    let before: string | undefined;
    for (let page = 0; page < MAX_GAP_PAGES; page++) {
      const { messages, more, readState } = await api.history(PAGE_SIZE, before);
      if (!isCurrent()) return;
      const { state } = store;
      const first = state.messages.length === 0 || (page === 0 && state.older === 'unknown');
      const overlaps = messages.some((m) => state.messages.some((k) => k.id === m.id));
      if (first) this.#earliest = { chatId: messages[0]?.chatId ?? '', more };
      addPage(messages, first || undefined, page > 0 || !first);
      if (page === 0) applyReadState(readState);
      if (first || overlaps || !more || !messages.length) return;
      before = messages[0]!.id;
    }
  }

  #syncFailed(err: ApiError): void {
    const { store, blocked, guard } = this.config;
    if (err.status === 401 || err.status === 403) return blocked(err);
    if (err.status === 404) {
      // There is no open chat; the next message opens one.
      if (store.state.older === 'unknown') store.dispatch({ type: 'older', older: 'more' });
      return;
    }
    // A gap stays until a sync succeeds: a socket that is connected delivers only what follows.
    const delay = Math.min(MAX_SYNC_DELAY, 1_000 * 2 ** this.#failures++);
    if (!err.isTemporary) return;
    const isCurrent = guard();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(
      () => isCurrent() && void this.sync(),
      Math.max(delay, err.retryAfter * 1_000) * (1 + Math.random()),
    );
  }

  syncIfStale(): void {
    if (Date.now() - this.#syncedAt > SYNC_MAX_AGE) void this.sync();
  }

  /** Loads the page before the first message: of its chat, or if that begins there, of the chat before it. */
  async loadOlder(): Promise<void> {
    const { store, guard, blocked } = this.config;
    if (store.state.older !== 'more' && store.state.older !== 'failed') return;
    const isCurrent = guard();
    store.dispatch({ type: 'older', older: 'loading' });
    try {
      await this.#loadBefore(isCurrent);
    } catch (err) {
      if (!isCurrent()) return;
      const status = err instanceof ApiError ? err.status : 0;
      if (status === 401) return blocked(err as ApiError);
      store.dispatch({ type: 'older', older: status === 404 ? 'none' : 'failed' });
    }
  }

  async #loadBefore(isCurrent: () => boolean): Promise<void> {
    const { api, store } = this.config;
    const sameChat = this.#earliest.more;
    const chatId = sameChat ? this.#earliest.chatId : await api.chatBefore(this.#earliest.chatId);
    if (!isCurrent()) return;
    if (!chatId && !sameChat) return store.dispatch({ type: 'older', older: 'none' });
    const before = sameChat ? store.state.messages[0]?.id : undefined;
    const { messages, more } = await api.history(PAGE_SIZE, before, chatId);
    if (!isCurrent()) return;
    this.#earliest = { chatId, more };
    const last = messages.at(-1);
    if (last && !sameChat) store.dispatch({ type: 'end', message: last });
    store.dispatch({ type: 'messages', messages, more: true });
  }

  /** Forgets the chats of a session that has ended. */
  reset(): void {
    this.#earliest = { chatId: '', more: false };
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}
