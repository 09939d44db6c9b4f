import type { Data } from '@parley/shared/message.js';
import type { Stored } from '../host.js';

/** What a session keeps in the browser. */
export interface SessionRecord extends Stored {
  /** Up to which message the visitor has read: its time and id. */
  r?: [at: string, id: string];
  /** Sound is off. */
  s?: boolean;
  /** Whose session it is, where the site has said so. */
  i?: string;
  /** The chat that the visitor does not want to rate. */
  q?: string;
  /** What the visitor has registered with, without proofs that expire: with it the token is renewed. */
  u?: Data;
  /** Where the socket is in the stream of replies, and since when: another tab, or the next page, goes on from there. */
  p?: [pid: string, offset: string | undefined, at: number];
}

/** Texts by key: localStorage, or memory where the browser keeps nothing. */
interface Entries {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
  keys(): string[];
}

/** Where the session, the messages that are not sent yet and their files are kept. It writes nothing until it is asked to. */
export class Storage {
  readonly #entries: Entries;
  readonly #blobs: Blobs;
  readonly blocked: boolean;

  constructor(readonly key: string, local: globalThis.Storage | undefined = localStorageIfAny(), idb: IDBFactory | undefined = local && globalThis.indexedDB) {
    this.blocked = !local;
    this.#entries = local ? onLocalStorage(local) : inMemory();
    this.#blobs = new Blobs(key, idb);
  }

  session(): SessionRecord {
    return decode<SessionRecord>(this.#entries.getItem(this.key)) ?? {};
  }

  /** Changes the session's record; undefined removes a member. */
  update(change: Partial<{ [K in keyof SessionRecord]: SessionRecord[K] | undefined }>): void {
    this.#put(this.key, { ...this.session(), ...change });
  }

  /** What stands below the session's key, in the order of the names. */
  list<T>(prefix: string): T[] {
    const start = `${this.key}.${prefix}.`;
    const names = this.#entries.keys().filter((k) => k.startsWith(start)).sort();
    return names.map((k) => decode<T>(this.#entries.getItem(k))).filter((v): v is T => v !== undefined);
  }

  put(prefix: string, name: string, value: unknown): void {
    this.#put(`${this.key}.${prefix}.${name}`, value);
  }

  remove(prefix: string, name: string): void {
    this.#entries.removeItem(`${this.key}.${prefix}.${name}`);
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

  /** Forgets everything. */
  async clear(): Promise<void> {
    for (const k of this.#entries.keys()) if (k === this.key || k.startsWith(this.key + '.')) this.#entries.removeItem(k);
    await this.#blobs.clear();
  }

  close(): void {
    this.#blobs.close();
  }

  #put(key: string, value: unknown): void {
    try {
      this.#entries.setItem(key, JSON.stringify(value));
    } catch {
      // The quota is used up: the session goes on without what did not fit.
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

function localStorageIfAny(): globalThis.Storage | undefined {
  try {
    const s = globalThis.localStorage;
    s.getItem('parley'); // throws where the browser blocks it; writes nothing
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

/** Files that wait to be sent, in IndexedDB; in memory where there is none. */
class Blobs {
  #memory = new Map<string, Blob>();
  #open: Promise<IDBDatabase> | undefined;

  constructor(readonly name: string, readonly idb: IDBFactory | undefined) {}

  async put(name: string, blob: Blob): Promise<void> {
    this.#memory.set(name, blob);
    await this.#do('readwrite', (s) => s.put(blob, name));
  }

  async get(name: string): Promise<Blob | undefined> {
    return this.#memory.get(name) ?? ((await this.#do('readonly', (s) => s.get(name))) as Blob | undefined);
  }

  async remove(name: string): Promise<void> {
    this.#memory.delete(name);
    await this.#do('readwrite', (s) => s.delete(name));
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
    void this.#open?.then((db) => db.close(), () => {});
    this.#open = undefined;
  }

  #database(idb: IDBFactory): Promise<IDBDatabase> {
    return (this.#open ??= new Promise((resolve, reject) => {
      const r = idb.open(this.name, 1);
      r.onupgradeneeded = () => r.result.createObjectStore('files');
      r.onsuccess = () => {
        r.result.onversionchange = () => this.close(); // another tab forgets
        resolve(r.result);
      };
      r.onerror = () => reject(new Error('IndexedDB'));
    }));
  }

  async #do(mode: IDBTransactionMode, act: (s: IDBObjectStore) => IDBRequest): Promise<unknown> {
    if (!this.idb) return undefined;
    try {
      const db = await this.#database(this.idb);
      return await new Promise((resolve, reject) => {
        const r = act(db.transaction('files', mode).objectStore('files'));
        r.onsuccess = () => resolve(r.result);
        r.onerror = () => reject(new Error('IndexedDB'));
      });
    } catch {
      return undefined; // private windows: memory has it
    }
  }
}
