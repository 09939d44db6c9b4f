import { text } from '@parley/shared/message.js';
import type { ChatFilter } from '../api/api.js';
import { isStatus } from '../api/client.js';
import type { LiveEvents } from '../api/live.js';
import type { Agent, Chat, Message } from '../api/types.js';
import type { Chunk } from '../lib/load.js';
import { Store } from '../lib/store.js';

export interface ListState {
  items: Chat[];
  next: string;
  ready: boolean;
  loading: boolean;
  error?: unknown;
}

const empty: ListState = { items: [], next: '', ready: false, loading: true };

/** Bounds the chats that are kept although they are not shown. */
const MOST_OUTSIDE = 500;

/** Sorts chats by their last activity, latest first. */
export const byActivity = (a: Chat, b: Chat): number =>
  a.activityAt > b.activityAt ? -1 : a.activityAt < b.activityAt ? 1 : a.id > b.id ? -1 : a.id < b.id ? 1 : 0;

/** Sorts waiting chats, the longest wait first. */
export const byWait = (a: Chat, b: Chat): number =>
  (a.controlledSince ?? '') < (b.controlledSince ?? '')
    ? -1
    : (a.controlledSince ?? '') > (b.controlledSince ?? '')
      ? 1
      : a.id < b.id
        ? -1
        : a.id > b.id
          ? 1
          : 0;

/** Whether a chat matches a filter. It ignores the search text, which only the server can match. */
export function matches(c: Chat, f: ChatFilter, me: string): boolean {
  if (f.appId && c.appId !== f.appId) return false;
  if (f.status && (f.status === 'open' ? c.status === 'closed' : c.status !== f.status)) return false;
  if (f.unread && !c.unread) return false;
  if (f.waiting && !c.waiting) return false;
  if (f.control && c.control !== f.control) return false;
  if (f.assignee === 'none' && c.assignee) return false;
  if (f.assignee && f.assignee !== 'none' && c.assignee?.id !== (f.assignee === 'me' ? me : f.assignee)) return false;
  return true;
}

export function insertSorted(items: Chat[], chat: Chat, order = byActivity): Chat[] {
  const rest = items.filter((c) => c.id !== chat.id);
  const at = rest.findIndex((c) => order(chat, c) < 0);
  return at < 0 ? [...rest, chat] : [...rest.slice(0, at), chat, ...rest.slice(at)];
}

export interface ListConfig {
  load(filter: ChatFilter, cursor: string, signal: AbortSignal): Promise<Chunk<Chat>>;
  get(id: string): Promise<Chat>;
  me: string;
  agentName(id: string): string;
  /** The id of the open chat. It stays in the list even if it no longer matches the filter. */
  current(): string;
  /** Whether the chat is open in a focused window, so that new messages count as read. */
  seen(id: string): boolean;
}

/** The list of chats. Live events keep it up to date. */
export class ChatList {
  readonly state = new Store<ListState>(empty);
  #filter: ChatFilter = {};
  #run = new AbortController();
  /** Chats that are about to close, and not shown. */
  readonly #hidden = new Map<string, Chat>();
  /**
   * Chats that events were about and that do not match the filter, the latest last. A response of the server may lack
   * what events have told before, such as the message of a chat that only then begins to wait.
   */
  readonly #outside = new Map<string, Chat>();
  /** Chats being loaded, with the changes to apply to the response, which may be older than the events. */
  readonly #requested = new Map<string, ((c: Chat) => Chat)[]>();
  /** The events since the first page was requested. The response may be older than they are. */
  #early: (() => void)[] | undefined;

  constructor(readonly config: ListConfig) {}

  show(filter: ChatFilter): void {
    this.#filter = filter;
    this.state.set(empty);
    this.#fetch('');
  }

  reload(): void {
    this.state.update((s) => ({ ...s, error: undefined }));
    this.#fetch('');
  }

  more(): void {
    const { next, loading, error } = this.state.value;
    if (next && !loading && !error) this.#fetch(next);
  }

  retry(): void {
    const { next, ready } = this.state.value;
    this.#fetch(ready ? next : '');
  }

  stop(): void {
    this.#run.abort();
  }

  #fetch(cursor: string): void {
    if (!cursor) {
      this.#run.abort();
      this.#run = new AbortController();
      this.#early = [];
      this.#outside.clear();
    }
    const { signal } = this.#run;
    this.state.update((s) => ({ ...s, loading: true, error: undefined }));
    this.config.load(this.#filter, cursor, signal).then(
      (page) => {
        if (signal.aborted) return;
        this.state.update((s) => {
          const known = new Set(cursor ? s.items.map((c) => c.id) : []);
          const found = page.items.filter((c) => !this.#hidden.has(c.id));
          const items = cursor ? [...s.items, ...found.filter((c) => !known.has(c.id))] : found;
          return { items, next: page.next, ready: true, loading: false };
        });
        if (!cursor) this.#repeatEarly();
        // A page of a search may be short or empty although more pages follow.
        if (page.next && this.state.value.items.length < 20) this.more();
      },
      (error: unknown) => {
        if (!signal.aborted) this.state.update((s) => ({ ...s, loading: false, error }));
      },
    );
  }

  /** Applies an event, and once more to the first page if that is still on its way. */
  #take(event: () => void): void {
    event();
    this.#early?.push(event);
  }

  #repeatEarly(): void {
    const events = this.#early ?? [];
    this.#early = undefined;
    for (const event of events) event();
  }

  find(id: string): Chat | undefined {
    return this.state.value.items.find((c) => c.id === id);
  }

  /** Adds or updates a chat. A chat that does not match the filter is removed, unless it is the open chat. A search result gets no new chats. */
  put(chat: Chat): void {
    if (this.#hidden.has(chat.id)) return void this.#hidden.set(chat.id, chat);
    const known = this.find(chat.id);
    const stays =
      (matches(chat, this.#filter, this.config.me) && (known || !this.#filter.q)) ||
      (known && this.config.current() === chat.id);
    this.#outside.delete(chat.id);
    if (!stays) this.#keepOutside(chat);
    this.state.update((s) => ({
      ...s,
      items: stays
        ? insertSorted(s.items, chat, this.#filter.waiting ? byWait : byActivity)
        : s.items.filter((c) => c.id !== chat.id),
    }));
  }

  #keepOutside(chat: Chat): void {
    this.#outside.set(chat.id, chat);
    const [oldest] = this.#outside.keys();
    if (this.#outside.size > MOST_OUTSIDE && oldest) this.#outside.delete(oldest);
  }

  /** Removes the chats that only stayed because they were open. */
  prune(): void {
    const current = this.config.current();
    const items = this.state.value.items.filter((c) => c.id === current || matches(c, this.#filter, this.config.me));
    if (items.length < this.state.value.items.length) this.state.update((s) => ({ ...s, items }));
  }

  /** Takes a chat out of the list until [[restore]]. */
  hide(chat: Chat): void {
    this.#hidden.set(chat.id, chat);
    this.state.update((s) => ({ ...s, items: s.items.filter((c) => c.id !== chat.id) }));
  }

  /** Shows a hidden chat again, where it matches the filter. */
  restore(id: string): void {
    const chat = this.#hidden.get(id);
    this.#hidden.delete(id);
    if (chat) this.put(chat);
  }

  #change(id: string, change: (c: Chat) => Chat): void {
    const known = this.find(id) ?? this.#hidden.get(id) ?? this.#outside.get(id);
    if (known) this.put(change(known));
    else void this.#request(id, change);
  }

  /** Loads a chat that is not in the list. Further events for the same chat share the request. */
  async #request(id: string, change: (c: Chat) => Chat): Promise<void> {
    const waiting = this.#requested.get(id);
    if (waiting) waiting.push(change);
    if (waiting || this.#filter.q) return;
    const changes = [change];
    this.#requested.set(id, changes);
    try {
      const chat = await this.config.get(id);
      this.put(changes.reduce((c, f) => f(c), chat));
    } catch (error) {
      const isInvisible = isStatus(error, 404);
      if (!isInvisible) this.reload(); // has the chat, or shows why there is no answer
    } finally {
      this.#requested.delete(id);
    }
  }

  onMessage(e: LiveEvents['message']): void {
    this.#take(() => this.#changeByMessage(e));
  }

  #changeByMessage({ chatId, message }: LiveEvents['message']): void {
    const fromVisitor = !message.isFromSupport;
    this.#change(chatId, (c) => {
      const newer = !c.lastMessage || c.lastMessage.createdAt <= message.createdAt;
      const isUncounted = !c.visitorWroteAt || c.visitorWroteAt < message.createdAt;
      return {
        ...c,
        ...(newer && !isNotice(message) && { lastMessage: message }),
        ...(fromVisitor && {
          question: message,
          activityAt: message.createdAt > c.activityAt ? message.createdAt : c.activityAt,
          unread: !this.config.seen(chatId),
          ...(c.status !== 'closed' && { inWindow: true }),
          // The server has counted the visitor's messages up to visitorWroteAt. lastMessage may be a newer reply, so it cannot be used here.
          ...(isUncounted && { visitorWroteAt: message.createdAt }),
          unreadCount: this.config.seen(chatId) ? 0 : c.unreadCount + (isUncounted ? 1 : 0),
          ...(c.windowExpiresAt && {
            windowExpiresAt: new Date(Date.parse(message.createdAt) + 86_400_000).toISOString(),
          }),
          status: c.status === 'pending' ? 'active' : c.status,
        }),
      };
    });
  }

  onChat(e: LiveEvents['chat']): void {
    this.#take(() => this.#change(e.chatId, (c) => applyChat(c, e, this.config.agentName)));
  }

  onRated(e: LiveEvents['rated']): void {
    this.#take(() => this.#change(e.chatId, (c) => applyRating(c, e)));
  }

  onRegistered(e: LiveEvents['registered']): void {
    this.#take(() => {
      if (!this.find(e.chatId)) void this.#request(e.chatId, (c) => c);
    });
  }

  onRead(e: LiveEvents['read']): void {
    this.#take(() => {
      const known = this.find(e.chatId);
      if (known?.unread) this.put({ ...known, unread: false, unreadCount: 0 });
    });
  }
}

/** Whether the platform wrote a message, such as "You are being connected to the team". */
const isNotice = (m: Message): boolean => m.isFromSupport && !!text(m.data.notice);

export function applyChat(c: Chat, e: LiveEvents['chat'], agentName: (id: string) => string): Chat {
  const assignee: Agent | null = e.assigneeId ? { id: e.assigneeId, name: agentName(e.assigneeId) } : null;
  const waiting =
    e.control === 'agent' && !assignee && !e.closedAt && c.status !== 'closed' && (!!c.visitorWroteAt || !!e.handover);
  const since = waiting && !c.waiting ? { controlledSince: e.handover?.at ?? new Date().toISOString() } : {};
  return {
    ...c,
    ...since,
    control: e.control,
    assignee,
    waiting,
    handover: e.handover,
    ...(e.closedAt && { closedAt: e.closedAt, status: 'closed' as const, inWindow: false }),
  };
}

/** Keeps the latest rating. A response of the server may be newer than the event. */
export function applyRating(c: Chat, e: LiveEvents['rated']): Chat {
  return c.rating && c.rating.ratedAt > e.rating.ratedAt ? c : { ...c, rating: e.rating };
}
