/**
 * Owns the visitor's session: it begins with a token, has that renewed, and ends when the visitor, the site or the
 * server ends it.
 */
import type { Api, ApiError } from '@parley/shared/api.js';
import type { Typing } from '@parley/shared/typing.js';
import type { Host } from '../host.js';
import type { History } from './history.js';
import type { Realtime } from './realtime.js';
import type { State, Store } from './reducer.js';
import type { Registration } from './registration.js';
import type { Sending } from './sending.js';
import type { Storage } from './storage.js';
import type { Tabs } from './tabs.js';
import { expiresSoon, visitorOf } from './token.js';

export interface LifecycleConfig {
  host: Pick<Host, 'badge'>;
  /** Has the token of the session; an empty one without a session. */
  api: Pick<Api, 'token'>;
  store: Store;
  storage: Storage;
  tabs: Pick<Tabs, 'start' | 'stop' | 'isLeader'>;
  /** Aborted when the widget is destroyed. */
  destroyed: AbortSignal;
  history: Pick<History, 'sync' | 'reset'>;
  realtime: Pick<Realtime, 'connect' | 'disconnect' | 'sendToken'>;
  registration: Pick<Registration, 'known' | 'register' | 'renew' | 'reset'>;
  sending: Pick<Sending, 'flush' | 'showOutbox'>;
  typing: Pick<Typing, 'clear'>;
  reportError(err: unknown): void;
}

export class Lifecycle {
  /** Counts the sessions. */
  #generation = 0;

  constructor(readonly config: LifecycleConfig) {}

  /**
   * Returns a function that says whether the session is still the one of this call. The responses of an earlier one are
   * ignored.
   */
  guard(): () => boolean {
    const generation = this.#generation;
    return () => generation === this.#generation && !this.config.destroyed.aborted;
  }

  begin(token: string): void {
    const { api, store, storage, tabs, history, sending } = this.config;
    api.token = token;
    this.#generation++;
    const { read, skippedRating } = storage.session();
    store.dispatch({ type: 'read', read: read ?? ['', ''] });
    store.dispatch({ type: 'skipped', chatId: skippedRating ?? '' });
    sending.showOutbox();
    store.dispatch({ type: 'connection', connection: 'connecting' });
    tabs.start();
    if (!tabs.isLeader) void history.sync();
  }

  /** Ends the session in this tab; stored data stays. */
  end(notice?: State['notice']): void {
    const { host, api, store, tabs, history, realtime, registration, typing } = this.config;
    this.#generation++;
    api.token = '';
    registration.reset();
    history.reset();
    realtime.disconnect();
    tabs.stop();
    typing.clear();
    store.dispatch({ type: 'ended', ...(notice && { notice }) });
    host.badge(0);
  }

  /** Ends the session and removes what is stored, including what this tab has written since another tab removed it. */
  forget(): void {
    this.end();
    void this.config.storage.clear();
  }

  /** Replaces the token by one that expires later, if the server gives one for the same visitor. */
  async renew(): Promise<void> {
    const { api, storage, realtime, registration } = this.config;
    const isCurrent = this.guard();
    const token = await registration.renew();
    if (!token || !isCurrent()) return;
    api.token = token;
    storage.update({ token });
    realtime.sendToken(token);
  }

  /** The tab that leads has the socket, sends, and renews the token. */
  onLeadershipChange(isLeader: boolean): void {
    const { api, destroyed, realtime, sending } = this.config;
    if (!api.token || destroyed.aborted) return;
    if (!isLeader) return realtime.disconnect();
    realtime.connect();
    sending.flush();
    if (expiresSoon(api.token)) void this.renew();
  }

  /** Another tab has renewed the token, or has begun or ended the session. */
  onStored(): void {
    const { api, store, storage } = this.config;
    const { token = '', read, muted } = storage.session();
    store.dispatch({ type: 'sound', sound: !muted });
    if (token && visitorOf(token) === visitorOf(api.token)) {
      api.token = token;
      if (read) store.dispatch({ type: 'read', read });
      return;
    }
    if (token === api.token) return;
    if (api.token) this.end();
    if (!token) return;
    this.begin(token);
    if (store.state.settings) store.dispatch({ type: 'phase', phase: 'chat' });
  }

  /** Handles a request that the server does not take, now or ever. Status 0 is a network error. */
  blocked(err: ApiError): void {
    const { store, reportError } = this.config;
    if (err.status === 401) return this.#unauthorized();
    reportError(err);
    if (err.status === 403) return this.refuse();
    if (err.status === 429) return store.dispatch({ type: 'slow', slow: true });
    if (store.state.connection === 'online' || err.status !== 0)
      store.dispatch({ type: 'connection', connection: navigator.onLine === false ? 'offline' : 'unavailable' });
  }

  /**
   * Handles a rejected token. Registers again without the form if the registration fields or the site's identity are
   * known.
   */
  #unauthorized(): void {
    const { api, storage, registration } = this.config;
    if (!api.token) return;
    const { known } = registration;
    this.end('sessionEnded');
    storage.update({ token: undefined, unreadCount: 0, pending: undefined });
    if (known) void registration.register(known);
  }

  /**
   * The application does not exist, or does not allow this site. Only its owner can change that, so nothing is tried
   * again.
   */
  refuse(): void {
    this.end();
    this.config.store.dispatch({ type: 'phase', phase: 'refused' });
  }
}
