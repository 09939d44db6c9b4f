import { Api, type ApiError } from '@parley/shared/api.js';
import type { Message } from '@parley/shared/message.js';
import { throttle, Typing } from '@parley/shared/typing.js';
import type { Host } from '../host.js';
import { ErrorReport } from './errors.js';
import { History } from './history.js';
import { Incoming } from './incoming.js';
import { Lifecycle } from './lifecycle.js';
import { ReadCursor } from './readcursor.js';
import { Realtime } from './realtime.js';
import { initial, reduce, type Action, type State, type Store } from './reducer.js';
import { Registration } from './registration.js';
import { Sending } from './sending.js';
import { SettingsLoader } from './settings.js';
import { Storage } from './storage.js';
import { Streaming } from './streaming.js';
import { Support } from './support.js';
import { TabEvents } from './tabevents.js';
import { Tabs } from './tabs.js';

export interface SessionConfig {
  host: Host;
  /** Called for a new message from the other side, but not for messages of the initial history. */
  onReply(m: Message): void;
  /** Whether the end of the transcript is on the screen, so that a new message is read as it arrives. */
  isReading(): boolean;
}

/**
 * The model of one widget: holds the state that the UI renders, and connects the parts that change it. Each part owns
 * one thing and sees of the others only what its config names. A session of the visitor begins with a token and ends
 * without one; the parts stay.
 */
export class Session implements Store {
  state: State = initial;
  readonly api: Api;
  readonly storage: Storage;
  readonly history: History;
  readonly readCursor: ReadCursor;
  readonly registration: Registration;
  readonly sending: Sending;
  readonly streaming: Streaming;
  readonly support = new Support(this);
  readonly #host: Host;
  readonly #errors: ErrorReport;
  readonly #incoming: Incoming;
  readonly #lifecycle: Lifecycle;
  readonly #realtime: Realtime;
  readonly #settings: SettingsLoader;
  readonly #tabs: Tabs;
  readonly #tabEvents: TabEvents;
  readonly #typing = new Typing((names) => this.dispatch({ type: 'typing', names }));
  readonly #listeners = new Set<() => void>();
  readonly #destroyed = new AbortController();

  constructor(readonly config: SessionConfig) {
    const { host, onReply } = config;
    this.#host = host;
    this.api = new Api(host.base);
    this.storage = new Storage(host.key);
    this.#errors = new ErrorReport(host);
    this.#tabs = new Tabs({
      name: host.key,
      isolated: this.storage.blocked,
      onEvent: (e) => this.#tabEvents.handle(e),
      onLeadershipChange: (isLeader) => this.#lifecycle.onLeadershipChange(isLeader),
    });
    // What several parts need. The config of each part says which of it.
    const common = {
      host,
      api: this.api,
      storage: this.storage,
      store: this,
      tabs: this.#tabs,
      destroyed: this.#destroyed.signal,
      guard: () => this.#lifecycle.guard(),
      updateUnread: () => this.#updateUnread(),
      markAvailable: () => this.#markAvailable(),
      reportError: (err: unknown, log?: boolean) => this.#errors.report(err, log),
      blocked: (err: ApiError) => this.#lifecycle.blocked(err),
      refuse: () => this.#lifecycle.refuse(),
    };
    this.#incoming = new Incoming({ ...common, support: this.support, typing: this.#typing, onReply });
    this.readCursor = new ReadCursor({
      ...common,
      sendRead: (id, otherwise) => this.#realtime.sendRead(id, otherwise),
    });
    this.streaming = new Streaming(common);
    this.sending = new Sending({
      ...common,
      maySend: () => this.#tabs.isLeader && this.registered && !common.destroyed.aborted,
      onAccepted: (m) => this.#onAccepted(m),
    });
    this.registration = new Registration({
      ...common,
      beginSession: (token) => this.#lifecycle.begin(token),
      endSession: () => this.#lifecycle.end(),
    });
    this.#settings = new SettingsLoader({
      ...common,
      registerSilently: () => this.registration.registerSilently(),
    });
    this.history = new History({
      ...common,
      loadChat: () => void this.support.load(),
      addPage: (messages, more, missed) => this.#incoming.addPage(messages, more, missed),
      applyReadState: (r) => this.readCursor.applyState(r),
    });
    this.#realtime = new Realtime({
      ...common,
      websocket: host.websocket,
      onConnected: (recovered) => this.#onConnected(recovered),
      onMessage: (m) => this.#incoming.add(m),
      onPart: (part) => this.streaming.apply(part),
      onRead: (event) => this.readCursor.onEvent(event),
      onTyping: (name, at) => this.#typing.heard(name, at),
      onTokenExpiring: () => void this.#lifecycle.renew(),
    });
    const parts = {
      ...common,
      history: this.history,
      incoming: this.#incoming,
      readCursor: this.readCursor,
      realtime: this.#realtime,
      registration: this.registration,
      sending: this.sending,
      streaming: this.streaming,
      typing: this.#typing,
    };
    this.#lifecycle = new Lifecycle(parts);
    this.#tabEvents = new TabEvents({ ...parts, onEnded: () => this.#lifecycle.forget() });
    this.#listenToPage('addEventListener');
  }

  subscribe(f: () => void): () => void {
    this.#listeners.add(f);
    return () => this.#listeners.delete(f);
  }

  dispatch(a: Action): void {
    const before = this.state;
    this.state = reduce(before, a);
    if (this.state === before) return;
    // Nobody sees a message unread that arrives in view.
    if (this.state.unread > before.unread && this.config.isReading()) return this.readCursor.markRead();
    if (this.state.connection !== before.connection || this.state.phase !== before.phase)
      this.#host.emit('state', this.#publicState());
    if (this.state.unread !== before.unread) this.#updateUnread();
    for (const f of [...this.#listeners]) f();
  }

  /** The public name of the state, for the `state` event. */
  #publicState(): string {
    return this.state.phase === 'chat' ? this.state.connection : this.state.phase;
  }

  get registered(): boolean {
    return !!this.api.token;
  }

  // The widget

  /** Resumes the stored session, if any, and loads the settings. */
  start(): Promise<void> {
    const { token, read, muted } = this.storage.session();
    this.dispatch({ type: 'sound', sound: !muted });
    this.dispatch({ type: 'read', read: read ?? ['', ''] });
    if (token) this.#lifecycle.begin(token);
    return this.#settings.load();
  }

  retryLoading(): void {
    this.dispatch({ type: 'phase', phase: 'loading' });
    void this.#settings.load();
  }

  /** Handles the opening of the chat, which starts a deferred registration. */
  opened(): void {
    this.dispatch({ type: 'open', open: true });
    if (this.state.phase === 'form' && !this.registered) void this.registration.registerSilently();
    this.#tabs.checkLeader();
  }

  setSound(on: boolean): void {
    this.dispatch({ type: 'sound', sound: on });
    if (this.registered) this.storage.update({ muted: !on || undefined });
  }

  setColours(back: string, front: string): void {
    this.#host.paint(back, front);
    if (this.registered) this.storage.update({ colours: [back, front] });
  }

  destroy(): void {
    this.#destroyed.abort();
    this.#listenToPage('removeEventListener');
    this.#settings.stop();
    this.history.stop();
    this.streaming.clear();
    this.sending.stop();
    this.#typing.clear();
    this.#realtime.disconnect();
    this.#tabs.stop();
    this.storage.close();
    this.#listeners.clear();
  }

  /** Ends the session in all tabs and removes everything that the widget has stored in this browser. */
  end(): void {
    this.#tabs.post({ kind: 'ended' });
    this.#lifecycle.forget();
  }

  // The server

  #onConnected(recovered: boolean): void {
    // If the server recovered the session, it replays missed events; otherwise load them from the history.
    if (!recovered || this.history.incomplete) void this.history.sync();
    this.sending.flush();
  }

  #onAccepted(m: Message): void {
    this.support.refreshAfter(m);
    this.#incoming.report(m);
  }

  /** Adds an offline message that the server has accepted. */
  addOfflineMessage(m: Message): void {
    this.dispatch({ type: 'messages', messages: [m] });
    this.#tabs.post({ kind: 'message', message: m });
    this.#incoming.report(m);
  }

  /** Sends a throttled `typing` event through the leader's socket. */
  readonly notifyTyping = throttle(() => {
    if (this.#tabs.isLeader) this.#realtime.sendTyping();
    else this.#tabs.post({ kind: 'writing' });
  });

  #markAvailable(): void {
    this.dispatch({ type: 'slow', slow: false });
    if (this.state.connection !== 'unavailable') return;
    if (this.#realtime.connected || !this.#tabs.isLeader) this.dispatch({ type: 'connection', connection: 'online' });
  }

  /** Updates the badge, and stores the unread count and pending work for the loader of the next page. */
  #updateUnread(): void {
    const { unread } = this.state;
    this.#host.badge(unread);
    if (!this.registered || this.#destroyed.signal.aborted) return;
    const awaitsReply = this.state.messages.at(-1)?.isFromSupport === false;
    const pending = this.sending.pending || awaitsReply;
    const stored = this.storage.session();
    if (stored.token && ((stored.unreadCount ?? 0) !== unread || !!stored.pending !== pending))
      this.storage.update({ unreadCount: unread, pending: pending || undefined });
  }

  // Other tabs and the page

  /** Handles a localStorage change by another tab. */
  readonly #onStorage = ({ key }: StorageEvent): void => {
    if (key && this.storage.isItem(key)) {
      this.sending.showOutbox();
      this.#updateUnread();
      this.sending.flush();
    } else if (!key || key === this.storage.key) this.#lifecycle.onStored();
  };

  /** Adds or removes the handlers of the page's events. */
  #listenToPage(change: 'addEventListener' | 'removeEventListener'): void {
    window[change]('online', this.#onOnline);
    window[change]('offline', this.#onOffline);
    window[change]('storage', this.#onStorage as EventListener);
    document[change]('visibilitychange', this.#onVisibilityChange);
  }

  readonly #onOffline = (): void => {
    if (this.registered) this.#realtime.setConnection('offline');
  };

  readonly #onOnline = (): void => {
    if (this.state.phase === 'failed') void this.#settings.load();
    if (!this.registered) return;
    if (this.#tabs.isLeader) this.#realtime.reconnectNow();
    this.sending.flush();
  };

  readonly #onVisibilityChange = (): void => {
    if (document.visibilityState !== 'visible' || !this.registered) return;
    this.#tabs.checkLeader();
    if (this.#tabs.isLeader) this.#realtime.wake();
    this.history.syncIfStale();
    this.sending.flush();
  };
}
