import { Store } from '../lib/store.js';
import { client } from './client.js';
import type {
  ChatEvent,
  EmptyEvent,
  Message,
  MessageEvent,
  PresenceEvent,
  RatedEvent,
  ReadEvent,
  RegisteredEvent,
  SeenEvent,
  StatusEvent,
  TypingEvent,
} from './types.js';

/** The events of GET /api/events by name. */
export interface LiveEvents {
  message: Omit<MessageEvent, 'message'> & { message: Message };
  chat: ChatEvent;
  registered: RegisteredEvent;
  rated: RatedEvent;
  read: ReadEvent;
  presence: PresenceEvent;
  status: StatusEvent;
  typing: TypingEvent;
  seen: SeenEvent;
  /** The client has to reload all data. */
  reset: EmptyEvent;
}

export type LiveState = 'connecting' | 'live' | 'lost';

type Listener<K extends keyof LiveEvents> = (event: LiveEvents[K]) => void;

const RETRY = 3_000;

/**
 * The live events of the inbox. EventSource reconnects automatically. When it gives up (a response other than 200), a new EventSource
 * continues after the last event id.
 */
export class Live {
  readonly state = new Store<LiveState>('connecting');
  readonly #listeners = new Map<string, Set<(event: never) => void>>();
  #source: EventSource | undefined;
  #lastId = '';
  #retry: ReturnType<typeof setTimeout> | undefined;
  #running = false;

  on<K extends keyof LiveEvents>(name: K, f: Listener<K>): () => void {
    const set = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, set);
    set.add(f as (event: never) => void);
    return () => set.delete(f as (event: never) => void);
  }

  start(): void {
    if (this.#running) return;
    this.#running = true;
    addEventListener('online', this.#again);
    addEventListener('offline', this.#lost);
    this.#connect();
  }

  stop(): void {
    this.#running = false;
    removeEventListener('online', this.#again);
    removeEventListener('offline', this.#lost);
    clearTimeout(this.#retry);
    this.#source?.close();
    this.#source = undefined;
    this.#lastId = '';
    this.state.set('connecting');
  }

  readonly #lost = () => this.state.set('lost');

  readonly #again = () => {
    clearTimeout(this.#retry);
    this.#source?.close();
    this.#connect();
  };

  #emit(name: string, data: unknown): void {
    for (const f of [...(this.#listeners.get(name) ?? [])]) f(data as never);
  }

  #connect(): void {
    if (!this.#running) return;
    const source = (this.#source = new EventSource(client.url('events', { lastEventId: this.#lastId })));
    const resumed = this.#lastId !== '';
    source.addEventListener('ready', (e) => {
      if (e.lastEventId) this.#lastId = e.lastEventId;
      if (!resumed) this.#emit('reset', {}); // what was loaded before may lack what happened meanwhile
      this.state.set('live');
    });
    source.addEventListener('offline', this.#lost);
    source.onerror = () => {
      this.#lost();
      if (source.readyState === EventSource.CLOSED) {
        clearTimeout(this.#retry);
        this.#retry = setTimeout(this.#again, RETRY);
        void client.call('session').catch(() => {}); // an expired session answers 401 here
      }
    };
    for (const name of [
      'message',
      'chat',
      'registered',
      'rated',
      'read',
      'presence',
      'status',
      'typing',
      'seen',
      'reset',
    ] as const) {
      source.addEventListener(name, (e) => {
        if (source !== this.#source) return;
        if (e.lastEventId) this.#lastId = e.lastEventId;
        let data: unknown;
        try {
          data = JSON.parse(e.data as string);
        } catch {
          return;
        }
        this.#emit(name, data);
      });
    }
  }
}

export const live = new Live();
