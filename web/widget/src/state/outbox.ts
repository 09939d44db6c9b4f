import { ApiError } from '@parley/shared/api.js';
import type { Data, Message } from '@parley/shared/message.js';
import type { Storage } from './storage.js';

/** A message that the server has not accepted yet. */
export interface OutboxItem {
  /** The Idempotency-Key: whatever happens on the way, one key is one message. */
  key: string;
  /** When the visitor sent it, in milliseconds. */
  at: number;
  /** What POST /message takes; absent for a file. */
  body?: { type: 'TEXT' | 'MULTIPLE_CHOICE_REPLY'; data: Data };
  file?: { name: string; size: number; mime: string; caption: string };
  /** When it was first tried. */
  tried?: number;
  /** Why it is not tried again by itself: a code of the server, or FILE_LOST. */
  failed?: string;
}

/** How an item goes over the wire. */
export interface Transport {
  send(body: Data, key: string): Promise<Message>;
  upload(file: Blob, name: string, caption: string, key: string, progress: (share: number) => void): { promise: Promise<Message>; abort(): void };
}

export interface OutboxConfig {
  storage: Storage;
  transport: Transport;
  /** Whether this tab is the one that sends. */
  maySend(): boolean;
  changed(): void;
  accepted(m: Message, key: string): void;
  progress(key: string, share: number): void;
  /** What keeps the first item from being sent: the status of the answer, 0 without one. */
  blocked(error: ApiError): void;
  now?(): number;
  setTimeout?: typeof setTimeout;
}

/** The server keeps a key for 24 hours; an hour less, for clocks that differ. */
const KEY_LIFETIME = 23 * 3600_000;
const FIRST_DELAY = 500;
const MAX_DELAY = 15_000;

/**
 * What the visitor has sent and the server has not accepted yet. Items are tried one after the other in the order in which they
 * were sent, so that they arrive in it; the next one waits until the first is accepted or refused for good. Each item is an entry
 * of its own in the storage, so that tabs do not overwrite each other's.
 */
export class Outbox {
  #running = false;
  #stopped = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #failures = 0;
  #upload: { key: string; abort(): void } | undefined;
  #cancelled = new Set<string>();

  constructor(readonly config: OutboxConfig) {}

  get items(): OutboxItem[] {
    return this.config.storage.list<OutboxItem>('o').sort((a, b) => a.at - b.at || (a.key < b.key ? -1 : 1));
  }

  get pending(): boolean {
    return this.items.some((i) => !i.failed);
  }

  add(body: NonNullable<OutboxItem['body']>, key = crypto.randomUUID()): OutboxItem {
    return this.#add({ key, at: this.#time(), body });
  }

  async addFile(file: Blob, name: string, caption: string, key = crypto.randomUUID()): Promise<OutboxItem> {
    const item = { key, at: this.#time(), file: { name, size: file.size, mime: file.type, caption } };
    await this.config.storage.putBlob(key, file);
    return this.#add(item);
  }

  /** Tries again what was refused. */
  retry(key: string): void {
    const item = this.items.find((i) => i.key === key);
    if (!item) return;
    const { failed: _, tried, ...rest } = item;
    // An old key may be forgotten by the server, or is bound to what was refused: a new one, and a new place in the order.
    const again = { ...rest, key: crypto.randomUUID(), at: this.#time() };
    void this.#move(key, tried === undefined ? { ...again, key } : again);
  }

  /** Takes an item out, and stops its upload. */
  remove(key: string): void {
    this.#cancelled.add(key);
    if (this.#upload?.key === key) this.#upload.abort();
    this.#forget(key);
    this.config.changed();
    this.kick();
  }

  /** Tries now instead of when the delay is over. */
  kick(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (!this.#running) void this.#run();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#upload?.abort();
  }

  #last = 0;
  /** Rises even when the clock does not. */
  #time(): number {
    return (this.#last = Math.max(this.#now(), this.#last + 1));
  }

  #now(): number {
    return this.config.now?.() ?? Date.now();
  }

  #add(item: OutboxItem): OutboxItem {
    this.#save(item);
    this.config.changed();
    this.kick();
    return item;
  }

  #save(item: OutboxItem): void {
    this.config.storage.put('o', item.key, item);
  }

  #forget(key: string): void {
    this.config.storage.remove('o', key);
    void this.config.storage.removeBlob(key);
  }

  async #move(from: string, to: OutboxItem): Promise<void> {
    if (to.file && from !== to.key) {
      const blob = await this.config.storage.blob(from);
      if (blob) await this.config.storage.putBlob(to.key, blob);
    }
    if (from !== to.key) this.#forget(from);
    this.#add(to);
  }

  async #run(): Promise<void> {
    this.#running = true;
    try {
      while (!this.#stopped && this.config.maySend()) {
        const item = this.items.find((i) => !i.failed);
        if (!item || !(await this.#try(item))) break;
      }
    } finally {
      this.#running = false;
    }
  }

  /** Returns whether the next item may be tried. */
  async #try(item: OutboxItem): Promise<boolean> {
    const now = this.#now();
    if (item.tried !== undefined && now - item.tried > KEY_LIFETIME) return this.#refuse(item, 'TOO_OLD'); // it may have arrived
    if (item.tried === undefined) this.#save((item = { ...item, tried: now }));
    try {
      const m = await this.#send(item);
      if (this.#stopped) return false; // the next one to send gets the same answer by the key
      this.#failures = 0;
      this.#forget(item.key);
      this.config.accepted(m, item.key);
      return true;
    } catch (err) {
      if (this.#stopped || this.#cancelled.has(item.key)) return !this.#stopped;
      return this.#failed(item, err instanceof ApiError ? err : new ApiError(0, 'INTERNAL', String(err)));
    }
  }

  async #send(item: OutboxItem): Promise<Message> {
    const { transport, storage, progress } = this.config;
    if (item.body) return transport.send(item.body as unknown as Data, item.key);
    const file = item.file!;
    const blob = await storage.blob(item.key);
    if (!blob) throw new ApiError(400, 'FILE_LOST', 'the file is gone');
    const upload = transport.upload(blob, file.name, file.caption, item.key, (share) => progress(item.key, share));
    this.#upload = { key: item.key, abort: upload.abort };
    try {
      return await upload.promise;
    } finally {
      this.#upload = undefined;
    }
  }

  #failed(item: OutboxItem, err: ApiError): boolean {
    if (err.status === 401 || err.status === 403) {
      this.config.blocked(err); // it stays for the next session
      return false;
    }
    const passes = err.status === 0 || err.status >= 500 || [408, 409, 425, 429].includes(err.status);
    if (!passes) return this.#refuse(item, err.code || String(err.status));
    this.config.blocked(err);
    const delay = Math.max(err.retryAfter * 1000, Math.min(MAX_DELAY, FIRST_DELAY * 2 ** this.#failures++));
    this.#timer = (this.config.setTimeout ?? setTimeout)(() => this.kick(), delay + Math.random() * 250);
    return false;
  }

  #refuse(item: OutboxItem, code: string): true {
    this.#save({ ...item, failed: code });
    this.config.changed();
    return true;
  }
}
