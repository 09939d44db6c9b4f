import { byTime, type Data } from '@parley/shared/message.js';
import { Typing, type Clock } from '@parley/shared/typing.js';
import { ApiError } from '../api/client.js';
import type { LiveEvents } from '../api/live.js';
import type { Message } from '../api/types.js';
import { Store } from '../lib/store.js';

/** A message that is queued, being sent, or rejected. */
export interface Pending {
  key: string;
  at: number;
  body?: Data;
  file?: { blob: Blob; name: string; caption: string };
  share: number;
  /** Why sending failed; absent while the message is queued or being sent. */
  problem?: unknown;
}

export interface Viewer {
  userId: string;
  name: string;
  until: number;
}

export interface ConversationState {
  messages: Message[];
  older: 'loading' | 'more' | 'none' | 'failed';
  ready: boolean;
  error?: unknown;
  pending: Pending[];
  viewers: Viewer[];
  /** The time up to which the visitor has read. */
  seenUpTo: string;

  visitorTyping: boolean;
  /** The names of the other agents who are typing; empty for the bot. */
  typing: string[];
}

export interface ConversationConfig {
  chatId: string;
  me: string;
  page(before: string, signal: AbortSignal): Promise<{ messages: Message[]; more: boolean; seenUpTo?: string }>;
  send(body: Data, key: string): Promise<Message>;
  sendFile(
    file: Blob,
    name: string,
    caption: string,
    key: string,
    progress: (share: number) => void,
  ): { promise: Promise<Message>; abort(): void };
  sent(message: Message): void;
  wait?(ms: number): Promise<void>;
  clock?: Clock;
}

/** The maximum number of attempts after transient errors. All attempts use one Idempotency-Key, so that the message is sent once. */
const ATTEMPTS = 6;

/** Merges messages in history order. Of two messages with the same id the later one wins, but a status never regresses. */
export function merged(old: Message[], more: Message[]): Message[] {
  const all = new Map(old.map((m) => [m.id, m]));
  for (const m of more) {
    const known = all.get(m.id);
    all.set(m.id, known ? { ...known, ...m, ...statusOf(known, m) } : m);
  }
  return [...all.values()].sort(byTime);
}

const ranks = { accepted: 0, stored: 1, failed: 2, delivered: 3, read: 4 };

function statusOf(a: Message, b: Message): Pick<Message, 'status'> {
  const [x, y] = [a.status, b.status];
  const status = x && y ? (ranks[x] > ranks[y] ? x : y) : (x ?? y);
  return status ? { status } : {};
}

const isTransient = (err: unknown) =>
  err instanceof ApiError &&
  (err.status === 0 ||
    (err.status === 409 && err.code === 'IDEMPOTENCY_IN_PROGRESS') ||
    err.status === 429 ||
    err.status === 502 ||
    err.status === 503 ||
    err.status === 504) &&
  err.code !== 'ABORTED';

/** One open chat: its messages, the messages being sent, and the other agents viewing it. */
export class Conversation {
  readonly state = new Store<ConversationState>({
    messages: [],
    older: 'loading',
    ready: false,
    pending: [],
    viewers: [],
    seenUpTo: '',
    visitorTyping: false,
    typing: [],
  });
  readonly #run = new AbortController();
  readonly #uploads = new Map<string, { abort(): void }>();
  readonly #config: ConversationConfig;
  readonly #visitor: Typing;
  readonly #others: Typing;
  #queue: Promise<void> = Promise.resolve();

  constructor(config: ConversationConfig) {
    this.#config = config;
    this.#visitor = new Typing((names) => this.#set({ visitorTyping: names.length > 0 }), config.clock);
    this.#others = new Typing((names) => this.#set({ typing: names }), config.clock);
  }

  #set(change: Partial<ConversationState>): void {
    this.state.update((s) => ({ ...s, ...change }));
  }

  async load(): Promise<void> {
    this.#set({ error: undefined });
    try {
      const { messages, more, seenUpTo = '' } = await this.#config.page('', this.#run.signal);
      const { ready, older, messages: old } = this.state.value;
      // After a reset the newest page may not overlap the loaded messages. Then it replaces them, and older messages are loaded again on demand.
      const overlaps = !ready || !more || messages.some((m) => old.some((o) => o.id === m.id));
      this.#set({
        messages: overlaps ? merged(old, messages) : messages,
        older: ready && overlaps ? older : more ? 'more' : 'none',
        ready: true,
      });
      this.onSeen(seenUpTo);
    } catch (error) {
      if (!this.#run.signal.aborted) this.#set({ error });
    }
  }

  async loadOlder(): Promise<void> {
    const { older, messages } = this.state.value;
    if (older === 'loading' || older === 'none' || !messages.length) return;
    this.#set({ older: 'loading' });
    try {
      const page = await this.#config.page(messages[0]!.id, this.#run.signal);
      this.#set({ messages: merged(this.state.value.messages, page.messages), older: page.more ? 'more' : 'none' });
    } catch {
      if (!this.#run.signal.aborted) this.#set({ older: 'failed' });
    }
  }

  stop(): void {
    this.#visitor.clear();
    this.#others.clear();
    this.#run.abort();
  }

  onMessage(m: Message): void {
    this.#set({ messages: merged(this.state.value.messages, [m]) });
    (m.isFromSupport ? this.#others : this.#visitor).message(m.createdAt);
  }

  /** Updates the status of a loaded message. A status never regresses. */
  onStatus(messageId: string, status: Message['status']): void {
    const known = this.state.value.messages.find((m) => m.id === messageId);
    if (known && status) this.#set({ messages: merged(this.state.value.messages, [{ ...known, status }]) });
  }

  onTyping(e: LiveEvents['typing']): void {
    if (e.userId === this.#config.me) return;
    if (e.side === 'visitor') this.#visitor.heard('', e.at);
    else this.#others.heard(e.name ?? '', e.at);
  }

  /** The visitor has read all messages up to a time. */
  onSeen(upTo: string): void {
    if (upTo > this.state.value.seenUpTo) this.#set({ seenUpTo: upTo });
  }

  onPresence(e: LiveEvents['presence'], now = Date.now()): void {
    if (e.userId === this.#config.me) return;
    const rest = this.state.value.viewers.filter((l) => l.userId !== e.userId);
    this.#set({
      viewers: [...rest, { userId: e.userId, name: e.name, until: now + e.expiresInSeconds * 1000 }].sort((a, b) =>
        a.name < b.name ? -1 : 1,
      ),
    });
  }

  /** Removes the viewers whose presence has expired. */
  expire(now = Date.now()): void {
    const { viewers } = this.state.value;
    if (viewers.some((l) => l.until <= now)) this.#set({ viewers: viewers.filter((l) => l.until > now) });
  }

  send(body: Data): void {
    this.#enqueue({ key: crypto.randomUUID(), at: Date.now(), body, share: 0 });
  }

  sendFile(blob: Blob, name: string, caption: string): void {
    this.#enqueue({ key: crypto.randomUUID(), at: Date.now(), file: { blob, name, caption }, share: 0 });
  }

  retry(key: string): void {
    const item = this.state.value.pending.find((p) => p.key === key);
    if (!item?.problem) return;
    const { problem: _, ...again } = item;
    this.#patch(key, () => again);
    this.#queue = this.#queue.then(() => this.#deliver(key));
  }

  discard(key: string): void {
    this.#uploads.get(key)?.abort();
    this.#set({ pending: this.state.value.pending.filter((p) => p.key !== key) });
  }

  #enqueue(item: Pending): void {
    this.#set({ pending: [...this.state.value.pending, item] });
    this.#queue = this.#queue.then(() => this.#deliver(item.key)); // one at a time, in order
  }

  #patch(key: string, change: (p: Pending) => Pending): void {
    this.#set({ pending: this.state.value.pending.map((p) => (p.key === key ? change(p) : p)) });
  }

  async #deliver(key: string): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const item = this.state.value.pending.find((p) => p.key === key);
      if (!item || item.problem) return;
      try {
        const message = await this.#attempt(item);
        this.#set({
          pending: this.state.value.pending.filter((p) => p.key !== key),
          messages: merged(this.state.value.messages, [message]),
        });
        this.#config.sent(message);
        return;
      } catch (problem) {
        if (!isTransient(problem) || attempt === ATTEMPTS) {
          this.#patch(key, (p) => ({ ...p, problem }));
          return;
        }
        const wait = Math.max(Math.min(500 * 2 ** attempt, 8000), (problem as ApiError).retryAfter * 1000);
        await (this.#config.wait ?? ((ms) => new Promise((done) => setTimeout(done, ms))))(wait);
      }
    }
  }

  async #attempt(item: Pending): Promise<Message> {
    if (!item.file) return this.#config.send(item.body!, item.key);
    const { blob, name, caption } = item.file;
    const upload = this.#config.sendFile(blob, name, caption, item.key, (share) =>
      this.#patch(item.key, (p) => ({ ...p, share })),
    );
    this.#uploads.set(item.key, upload);
    try {
      return await upload.promise;
    } finally {
      this.#uploads.delete(item.key);
    }
  }
}
