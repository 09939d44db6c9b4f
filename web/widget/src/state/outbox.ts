import { ApiError } from '@parley/shared/api.js';
import type { Data, Message } from '@parley/shared/message.js';
import type { Storage } from './storage.js';

/** A message that the server has not acknowledged yet. Stored as JSON. */
export interface OutboxItem {
  /** The Idempotency-Key: retries with the same key create one message. */
  key: string;
  /** Time of submission by the visitor, in milliseconds since the epoch. */
  at: number;
  /** Request body of POST /message; undefined for a file. */
  body?: { type: 'TEXT' | 'MULTIPLE_CHOICE_REPLY'; data: Data };
  file?: { name: string; size: number; mime: string; caption: string };
  /** Time of the first attempt. */
  tried?: number;
  /** Error code that ended the automatic retries: from the server, or FILE_LOST, TOO_OLD or an HTTP status. */
  failed?: string;
}

/** Sends items to the server. */
export interface Transport {
  send(body: Data, key: string): Promise<Message>;
  upload(
    file: Blob,
    name: string,
    caption: string,
    key: string,
    progress: (share: number) => void,
  ): { promise: Promise<Message>; abort(): void };
}

export interface OutboxConfig {
  storage: Storage;
  transport: Transport;
  /** Whether this tab may send, that is, leads and has a session. */
  maySend(): boolean;
  changed(): void;
  accepted(m: Message, key: string): void;
  progress(key: string, share: number): void;
  /** Called when the first item cannot be sent for now. Status 0 is a network error. */
  blocked(error: ApiError): void;
  now?(): number;
  setTimeout?: typeof setTimeout;
}

/** The server keeps idempotency keys for 24 hours. The margin of one hour allows for clock skew. */
const KEY_LIFETIME = 23 * 3600_000;
const FIRST_DELAY = 500;
const MAX_DELAY = 15_000;

/**
 * A persistent queue of messages that the server has not acknowledged yet. Items are sent one at a time in the order of
 * submission: the next item waits until the first is accepted or permanently rejected. Each item is a separate storage
 * entry, so that concurrent tabs do not overwrite each other's items.
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
    return this.config.storage.items<OutboxItem>().sort((a, b) => a.at - b.at || (a.key < b.key ? -1 : 1));
  }

  get pending(): boolean {
    return this.items.some((i) => !i.failed);
  }

  add(body: NonNullable<OutboxItem['body']>, key = crypto.randomUUID()): OutboxItem {
    return this.#add({ key, at: this.#nextTimestamp(), body });
  }

  async addFile(file: Blob, name: string, caption: string, key = crypto.randomUUID()): Promise<OutboxItem> {
    const item = { key, at: this.#nextTimestamp(), file: { name, size: file.size, mime: file.type, caption } };
    await this.config.storage.putBlob(key, file);
    return this.#add(item);
  }

  /** Retries an item that was rejected. */
  retry(key: string): void {
    const item = this.items.find((i) => i.key === key);
    if (!item) return;
    const { failed: _, tried, ...rest } = item;
    // The server may have expired the key or stored the rejection under it, so an attempted item gets a new key. It
    // moves to the end.
    const retried = { ...rest, key: crypto.randomUUID(), at: this.#nextTimestamp() };
    void this.#replace(key, tried === undefined ? { ...retried, key } : retried);
  }

  /** Removes an item and aborts its upload. */
  remove(key: string): void {
    this.#cancelled.add(key);
    if (this.#upload?.key === key) this.#upload.abort();
    this.#delete(key);
    this.config.changed();
    this.flush();
  }

  /** Sends now instead of after the retry delay. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (!this.#running) void this.#run();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#upload?.abort();
  }

  #lastTime = 0;
  /** A strictly increasing timestamp, even if the clock stands still. */
  #nextTimestamp(): number {
    return (this.#lastTime = Math.max(this.#now(), this.#lastTime + 1));
  }

  #now(): number {
    return this.config.now?.() ?? Date.now();
  }

  #add(item: OutboxItem): OutboxItem {
    this.#save(item);
    this.config.changed();
    this.flush();
    return item;
  }

  #save(item: OutboxItem): void {
    this.config.storage.putItem(item.key, item);
  }

  #delete(key: string): void {
    this.config.storage.removeItem(key);
    void this.config.storage.removeBlob(key);
  }

  async #replace(from: string, to: OutboxItem): Promise<void> {
    if (to.file && from !== to.key) {
      const blob = await this.config.storage.blob(from);
      if (blob) await this.config.storage.putBlob(to.key, blob);
    }
    if (from !== to.key) this.#delete(from);
    this.#add(to);
  }

  async #run(): Promise<void> {
    this.#running = true;
    try {
      while (!this.#stopped && this.config.maySend()) {
        const item = this.items.find((i) => !i.failed);
        if (!item || !(await this.#attempt(item))) break;
      }
    } finally {
      this.#running = false;
    }
  }

  /** Sends one item. Returns whether the next one may be sent. */
  async #attempt(item: OutboxItem): Promise<boolean> {
    const now = this.#now();
    // A retry could duplicate a delivered message.
    if (item.tried !== undefined && now - item.tried > KEY_LIFETIME) return this.#reject(item, 'TOO_OLD');
    if (item.tried === undefined) this.#save((item = { ...item, tried: now }));
    try {
      const m = await this.#send(item);
      // The next sender repeats the request with the same key and gets the same response.
      if (this.#stopped) return false;
      this.#failures = 0;
      this.#delete(item.key);
      this.config.accepted(m, item.key);
      return true;
    } catch (err) {
      if (this.#stopped || this.#cancelled.has(item.key)) return !this.#stopped;
      return this.#onFailure(item, err instanceof ApiError ? err : new ApiError(0, 'INTERNAL', String(err)));
    }
  }

  async #send(item: OutboxItem): Promise<Message> {
    const { transport, storage, progress } = this.config;
    if (item.body) return transport.send(item.body as unknown as Data, item.key);
    const file = item.file!;
    const blob = await storage.blob(item.key);
    if (!blob) throw new ApiError(400, 'FILE_LOST', 'file not found in storage');
    const upload = transport.upload(blob, file.name, file.caption, item.key, (share) => progress(item.key, share));
    this.#upload = { key: item.key, abort: upload.abort };
    try {
      return await upload.promise;
    } finally {
      this.#upload = undefined;
    }
  }

  #onFailure(item: OutboxItem, err: ApiError): boolean {
    if (err.status === 401 || err.status === 403) {
      this.config.blocked(err); // the item stays for the next session
      return false;
    }
    if (!err.isTemporary) return this.#reject(item, err.code || String(err.status));
    this.config.blocked(err);
    const delay = Math.max(err.retryAfter * 1000, Math.min(MAX_DELAY, FIRST_DELAY * 2 ** this.#failures++));
    this.#timer = (this.config.setTimeout ?? setTimeout)(() => this.flush(), delay + Math.random() * 250);
    return false;
  }

  #reject(item: OutboxItem, code: string): true {
    this.#save({ ...item, failed: code });
    this.config.changed();
    return true;
  }
}
