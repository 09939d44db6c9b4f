import type { Data } from '@parley/shared/message.js';
import type { Stored } from '../host.js';

/**
 * The session record in localStorage. The loader, the next page and other tabs read it, perhaps of another release: the
 * build must not mangle these names (mangle.mjs).
 */
export interface SessionRecord extends Stored {
  /** The visitor's read cursor: time and id of the message. */
  read?: [at: string, id: string];
  /** Sound is muted. */
  muted?: boolean;
  /** Fingerprint of the identity that the site has passed. */
  fingerprint?: string;
  /** Id of the chat whose rating the visitor has skipped. */
  skippedRating?: string;
  /** Registration fields, without the identity token, which expires. Used to renew the access token. */
  registration?: Data;
  /** Socket.IO recovery state and its time, so that another tab or the next page resumes the event stream. */
  recovery?: { pid: string; offset: string | undefined; at: number };
}

/** Key-value store: localStorage, or memory if the browser blocks storage. */
interface Entries {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
  keys(): string[];
}

/** Stores the session, the outbox and its files. The constructor writes nothing. */
export class Storage {
  readonly #entries: Entries;
  readonly #blobs: Blobs;
  readonly blocked: boolean;

  constructor(
    readonly key: string,
    local: globalThis.Storage | undefined = availableLocalStorage(),
    idb: IDBFactory | undefined = local && globalThis.indexedDB,
  ) {
    this.blocked = !local;
    this.#entries = local ? onLocalStorage(local) : inMemory();
    this.#blobs = new Blobs(key, idb);
  }

  session(): SessionRecord {
    return decode<SessionRecord>(this.#entries.getItem(this.key)) ?? {};
  }

  /** Merges a change into the session record; undefined removes a member. */
  update(change: Partial<{ [K in keyof SessionRecord]: SessionRecord[K] | undefined }>): void {
    this.#put(this.key, { ...this.session(), ...change });
  }

  /** Returns the items of the outbox, ordered by name. Each has an entry of its own. */
  items<T>(): T[] {
    const names = this.#entries
      .keys()
      .filter((k) => this.isItem(k))
      .sort();
    return names.map((k) => decode<T>(this.#entries.getItem(k))).filter((v): v is T => v !== undefined);
  }

  /** Whether an entry of localStorage is an item of the outbox. */
  isItem(key: string): boolean {
    return key.startsWith(this.#itemKey(''));
  }

  putItem(name: string, value: unknown): void {
    this.#put(this.#itemKey(name), value);
  }

  removeItem(name: string): void {
    this.#entries.removeItem(this.#itemKey(name));
  }

  putBlob(name: string, blob: Blob): Promise<void> {
    return this.#blobs.put(name, blob);
  }

  blob(name: string): Promise<Blob | undefined> {
    return this.#blobs.get(name);
  }

  removeBlob(name: string): Promise<void> {
    return this.#blobs.remove(name);
  }

  /** Removes all stored data of the session. */
  async clear(): Promise<void> {
    for (const k of this.#entries.keys())
      if (k === this.key || k.startsWith(this.key + '.')) this.#entries.removeItem(k);
    await this.#blobs.clear();
  }

  close(): void {
    this.#blobs.close();
  }

  #itemKey(name: string): string {
    return `${this.key}.outbox.${name}`;
  }

  #put(key: string, value: unknown): void {
    try {
      this.#entries.setItem(key, JSON.stringify(value));
    } catch {
      // Quota exceeded: the session continues without persisting the value.
    }
  }
}

function decode<T>(value: string | null): T | undefined {
  try {
    return value === null ? undefined : (JSON.parse(value) as T);
  } catch {
    return undefined;
  }
}

function availableLocalStorage(): globalThis.Storage | undefined {
  try {
    const s = globalThis.localStorage;
    s.getItem('parley'); // throws if the browser blocks storage; writes nothing
    return s;
  } catch {
    return undefined;
  }
}

function onLocalStorage(s: globalThis.Storage): Entries {
  return {
    getItem: (k) => s.getItem(k),
    setItem: (k, v) => s.setItem(k, v),
    removeItem: (k) => s.removeItem(k),
    keys: () => Object.keys(s),
  };
}

function inMemory(): Entries {
  const m = new Map<string, string>();
  return {
    getItem: (k) => m.get(k) ?? null,
    setItem: (k, v) => void m.set(k, v),
    removeItem: (k) => void m.delete(k),
    keys: () => [...m.keys()],
  };
}

/** Files in the outbox. IndexedDB, with a copy in memory as fallback. */
class Blobs {
  #memory = new Map<string, Blob>();
  #opening: Promise<IDBDatabase> | undefined;

  constructor(
    readonly name: string,
    readonly idb: IDBFactory | undefined,
  ) {}

  async put(name: string, blob: Blob): Promise<void> {
    this.#memory.set(name, blob);
    await this.#request('readwrite', (s) => s.put(blob, name));
  }

  async get(name: string): Promise<Blob | undefined> {
    return this.#memory.get(name) ?? ((await this.#request('readonly', (s) => s.get(name))) as Blob | undefined);
  }

  async remove(name: string): Promise<void> {
    this.#memory.delete(name);
    await this.#request('readwrite', (s) => s.delete(name));
  }

  async clear(): Promise<void> {
    this.#memory.clear();
    this.close();
    const idb = this.idb;
    if (!idb) return;
    await new Promise<void>((resolve) => {
      const r = idb.deleteDatabase(this.name);
      r.onsuccess = r.onerror = r.onblocked = () => resolve();
    });
  }

  close(): void {
    void this.#opening?.then(
      (db) => db.close(),
      () => {},
    );
    this.#opening = undefined;
  }

  #database(idb: IDBFactory): Promise<IDBDatabase> {
    return (this.#opening ??= new Promise((resolve, reject) => {
      const r = idb.open(this.name, 1);
      r.onupgradeneeded = () => r.result.createObjectStore('files');
      r.onsuccess = () => {
        r.result.onversionchange = () => this.close(); // another tab deletes the database
        resolve(r.result);
      };
      r.onerror = () => reject(new Error('IndexedDB'));
    }));
  }

  async #request(mode: IDBTransactionMode, act: (s: IDBObjectStore) => IDBRequest): Promise<unknown> {
    if (!this.idb) return undefined;
    try {
      const db = await this.#database(this.idb);
      return await new Promise((resolve, reject) => {
        const r = act(db.transaction('files', mode).objectStore('files'));
        r.onsuccess = () => resolve(r.result);
        r.onerror = () => reject(new Error('IndexedDB'));
      });
    } catch {
      return undefined; // for example in private windows; the copy in memory remains
    }
  }
}
