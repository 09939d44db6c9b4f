import { Manager, type Socket } from 'socket.io-client';
import { Api, ApiError, type ReadState } from '@parley/shared/api.js';
import { before, object, readMessage, text, type Data, type Message } from '@parley/shared/message.js';
import { throttle, Typing } from '@parley/shared/typing.js';
import { readPart, type Part } from '@parley/shared/parts.js';
import type { Host } from '../host.js';
import { Outbox } from './outbox.js';
import { initial, newestReply, reduce, type Action, type Connection, type State } from './reducer.js';
import { claimsOf, fingerprint, stringList, withoutEmpty } from './registration.js';
import { Support } from './support.js';
import { Storage } from './storage.js';
import { Tabs, type TabEvent } from './tabs.js';

const HISTORY_PAGE_SIZE = 50;
/** Limit of pages loaded to close a gap; older messages are loaded on scroll. */
const MAX_GAP_PAGES = 20;
/** Maximum age of the stored recovery state for a new page; with an older one the page loads the history instead. */
const RESUME_MAX_AGE = 60_000;
/** Renew the token when less than this share of its lifetime is left. */
const RENEWAL_SHARE = 0.2;
/** Time without a part after which a stream counts as ended. Longer than the server's timeout for the bot. */
const STREAM_TIMEOUT = 40_000;
/** Time for the final message to arrive after the last part. */
const FINAL_MESSAGE_TIMEOUT = 5_000;
/** A tab that becomes visible loads missed messages if its last sync is older than this. */
const SYNC_MAX_AGE = 30_000;
/** Longest delay between attempts to load the history, before jitter. */
const MAX_SYNC_DELAY = 15_000;
/** Timeout for the acknowledgement of a `read` event; after it the read cursor is sent over HTTP. */
const ACK_TIMEOUT = 5_000;

type RetryJob = 'settings' | 'connect' | 'sync';

export interface SessionConfig {
  host: Host;
  /** Called for a new message from the other side, but not for messages of the initial history. */
  onReply(m: Message): void;
  /** Whether the end of the transcript is on the screen, so that a new message is read as it arrives. */
  isReading(): boolean;
}

/** The model of one widget: talks to the server and to the other tabs, and holds the state that the UI renders. */
export class Session {
  state: State = initial;
  readonly api: Api;
  readonly storage: Storage;
  readonly outbox: Outbox;
  readonly support = new Support(this);
  readonly #tabs: Tabs;
  readonly #host: Host;
  readonly #listeners = new Set<() => void>();
  #socket: Socket | undefined;
  /** Session counter; responses of an earlier session are ignored. */
  #generation = 0;
  #registration: Data | undefined;
  #fingerprint = '';
  /** The earliest loaded chat, and whether it has earlier messages. */
  #earliest = { chatId: '', more: false };
  /** What the console has said: each error of the site's developer once. */
  readonly #reported = new Set<string>();
  #syncedAt = 0;
  #syncFailures = 0;
  #maxFileBytes: Promise<number> | undefined;
  #destroyed = false;
  /** Timers of pending retries. Each job has its own, so that none cancels another. */
  readonly #retries: Partial<Record<RetryJob, ReturnType<typeof setTimeout>>> = {};
  readonly #typing = new Typing((names) => this.dispatch({ type: 'typing', names }));
  #streamTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly config: SessionConfig) {
    this.#host = config.host;
    this.api = new Api(config.host.base);
    this.storage = new Storage(config.host.key);
    this.outbox = new Outbox({
      storage: this.storage,
      transport: this.api,
      maySend: () => this.#tabs.isLeader && !!this.api.token && !this.#destroyed,
      changed: () => this.#outboxChanged(),
      accepted: (m, key) => this.#accepted(m, key),
      progress: (key, share) => this.#progressed(key, share),
      blocked: (err) => this.#blocked(err),
    });
    this.#tabs = new Tabs({
      name: config.host.key,
      isolated: this.storage.blocked,
      onEvent: (e) => this.#onTabEvent(e),
      onLeadershipChange: (isLeader) => this.#onLeadershipChange(isLeader),
    });
    addEventListener('online', this.#onOnline);
    addEventListener('offline', this.#onOffline);
    addEventListener('storage', this.#onStorage);
    document.addEventListener('visibilitychange', this.#onVisibilityChange);
  }

  subscribe(f: () => void): () => void {
    this.#listeners.add(f);
    return () => this.#listeners.delete(f);
  }

  dispatch(a: Action): void {
    const before = this.state;
    this.state = reduce(before, a);
    if (this.state === before) return;
    if (this.state.unread > before.unread && this.config.isReading()) return this.markRead(); // nobody sees it unread
    if (this.state.connection !== before.connection || this.state.phase !== before.phase)
      this.#host.emit('state', this.#publicState());
    if (this.state.unread !== before.unread) this.#updateUnread();
    for (const f of [...this.#listeners]) f();
  }

  get registered(): boolean {
    return !!this.api.token;
  }

  /** Resumes the stored session, if any, and loads the settings. */
  async start(): Promise<void> {
    const stored = this.storage.session();
    this.dispatch({ type: 'sound', sound: !stored.muted });
    this.dispatch({ type: 'read', read: stored.read ?? ['', ''] });
    if (stored.token) this.#beginSession(stored.token);
    try {
      await this.#loadSettings();
    } catch (err) {
      this.#settingsFailed(err);
    }
  }

  async #loadSettings(): Promise<void> {
    const early = this.#host.settingsAnswer;
    this.#host.settingsAnswer = undefined;
    const settings = await this.api.settings(this.#host.appId, await early);
    if (this.#destroyed) return;
    this.dispatch({ type: 'settings', settings });
    if (this.registered) this.dispatch({ type: 'phase', phase: 'chat' });
    else if (!(await this.#registerSilently()) && this.state.phase !== 'form')
      this.dispatch({ type: 'phase', phase: 'form', ...(this.state.notice && { notice: this.state.notice }) });
  }

  #settingsFailed(err: unknown): void {
    if (this.#destroyed) return;
    this.#emitError(err);
    if (err instanceof ApiError && (err.status === 403 || err.status === 404)) return this.#refuse();
    this.dispatch({ type: 'phase', phase: 'failed' });
    this.#retryLater('settings', () => void this.#reload(), 5_000);
  }

  /** The application does not exist, or does not allow this site. Only its owner can change that, so nothing is tried again. */
  #refuse(): void {
    this.#endSession();
    this.dispatch({ type: 'phase', phase: 'refused' });
  }

  async #reload(): Promise<void> {
    clearTimeout(this.#retries.settings);
    try {
      await this.#loadSettings();
    } catch (err) {
      this.#settingsFailed(err);
    }
  }

  retryLoading(): void {
    this.dispatch({ type: 'phase', phase: 'loading' });
    void this.#reload();
  }

  // Registration

  /** The form fields from the settings, without those that the site's identity provides. */
  get formFields(): { name: string; required: boolean }[] {
    const c = this.state.settings?.widgetConfigs ?? {};
    const required = stringList(c.requiredFields);
    const given = this.#host.identity ?? {};
    return [...new Set([...stringList(c.formInputs), ...required])]
      .filter((name) => !given[name])
      .map((name) => ({ name, required: required.includes(name) }));
  }

  /** Registers without the form, after the chat is opened: if it has no fields, or with an identity, no required ones. */
  async #registerSilently(): Promise<boolean> {
    if (!this.state.open) return false;
    const fields = this.formFields;
    const known = this.#host.identity;
    if (fields.some((f) => f.required)) return false;
    if (!known && fields.length) return false;
    return this.register({});
  }

  /** Handles the opening of the chat, which starts a deferred registration. */
  opened(): void {
    this.dispatch({ type: 'open', open: true });
    if (this.state.phase === 'form' && !this.registered) void this.#registerSilently();
    this.#tabs.checkLeader();
  }

  async register(fields: Record<string, string>): Promise<boolean> {
    const body: Data = {
      language: this.#host.language,
      ...withoutEmpty(this.#host.identity ?? {}),
      ...withoutEmpty(fields),
      appId: this.#host.appId,
    };
    if (!body.email && !body.phone && !body.userId && !body.identityToken) body.userId = `web-${crypto.randomUUID()}`;
    this.dispatch({ type: 'form', form: { busy: true, errors: {}, problem: '' } });
    try {
      const token = await this.api.register(body);
      if (this.#destroyed) return false;
      this.#fingerprint = fingerprint(this.#host.identity);
      this.storage.update({
        token,
        registration: { ...body, userHash: undefined, identityToken: undefined },
        fingerprint: this.#fingerprint || undefined,
        unreadCount: 0,
        pending: true,
        recovery: undefined,
      });
      this.#beginSession(token);
      this.#registration = body;
      this.dispatch({ type: 'phase', phase: 'chat' });
      this.#host.emit('registered', { chatUserId: text(claimsOf(token).sub) });
      return true;
    } catch (err) {
      if (this.#destroyed) return false;
      const e = err instanceof ApiError ? err : undefined;
      const asked = this.formFields.map((f) => f.name);
      this.#emitError(err, !e?.details.length || !e.details.every((d) => asked.includes(d.field)));
      if (e?.status === 403 || e?.status === 404) {
        this.#refuse();
        return false;
      }
      const errors = Object.fromEntries((e?.details ?? []).map((d) => [d.field, d.message]));
      this.dispatch({ type: 'phase', phase: 'form' });
      this.dispatch({
        type: 'form',
        form: { busy: false, errors, problem: e?.isTemporary === false ? 'loadFailed' : 'unavailable' },
      });
      return false;
    }
  }

  /** Applies the identity that the site has passed. A session with a different identity ends. */
  identify(): void {
    const now = fingerprint(this.#host.identity);
    const stored = this.storage.session();
    if (this.registered) {
      if (now && now !== (this.#fingerprint || stored.fingerprint)) {
        this.#endSession();
        void this.register({});
      }
      return;
    }
    if (this.state.phase === 'form') void this.#registerSilently();
  }

  /** Ends the session in all tabs and removes everything that the widget has stored in this browser. */
  end(): void {
    this.#post({ kind: 'ended' });
    this.#endSession();
    void this.storage.clear();
  }

  // One session

  #beginSession(token: string): void {
    this.api.token = token;
    this.#generation++;
    const stored = this.storage.session();
    this.dispatch({ type: 'read', read: stored.read ?? ['', ''] });
    this.dispatch({ type: 'skipped', chatId: stored.skippedRating ?? '' });
    this.#outboxChanged();
    this.dispatch({ type: 'connection', connection: 'connecting' });
    this.#tabs.start();
    if (!this.#tabs.isLeader) void this.sync();
  }

  /** Ends the session in this tab; stored data stays. */
  #endSession(notice?: State['notice']): void {
    this.#generation++;
    this.api.token = '';
    this.#registration = undefined;
    this.#earliest = { chatId: '', more: false };
    this.#disconnect();
    this.#tabs.stop();
    this.#typing.clear();
    this.dispatch({ type: 'ended', ...(notice && { notice }) });
    this.#host.badge(0);
  }

  /** Handles a rejected token. Registers again without the form if the registration fields or the site's identity are known. */
  #unauthorized(): void {
    if (!this.registered) return;
    const again = this.#registration ?? (this.#host.identity && {});
    this.#endSession('sessionEnded');
    this.storage.update({ token: undefined, unreadCount: 0, pending: undefined });
    if (again) void this.register(again as Record<string, string>);
  }

  #onLeadershipChange(isLeader: boolean): void {
    if (!this.registered || this.#destroyed) return;
    if (!isLeader) {
      this.#disconnect();
      return;
    }
    this.#connect();
    this.outbox.flush();
    const { iat, exp } = claimsOf(this.api.token) as { iat: number; exp: number };
    if (exp - Date.now() / 1000 < (exp - iat) * RENEWAL_SHARE) void this.#renew();
  }

  #connect(): void {
    if (this.#socket) return;
    const at = new URL(this.api.base);
    const manager = new Manager(at.origin, {
      path: `${at.pathname}socket.io/`,
      upgrade: this.#host.websocket,
      reconnectionDelay: 300,
      reconnectionDelayMax: 5_000,
      timeout: 10_000,
    });
    const socket = (this.#socket = manager.socket('/message', {
      auth: (give) => give({ token: this.api.token, ...this.#recoveryFields(socket) }),
    }));
    socket.on('connect', () => {
      this.#setConnection('online');
      this.#storeRecovery();
      // If the server recovered the session, it replays missed events; otherwise load them from the history.
      if (!socket.recovered || this.state.older === 'unknown' || this.#syncFailures) void this.sync();
      this.outbox.flush();
    });
    socket.on('message', (record: unknown, offset: unknown) => this.#onMessage(record, text(offset)));
    socket.on('typing', (e: unknown) => {
      const [name, at] = [text(object(e).name), text(object(e).at)];
      this.#typing.heard(name, at);
      this.#post({ kind: 'typing', name, at });
    });
    socket.on('read', (read: unknown) => {
      this.#post({ kind: 'read', read });
      this.#onRead(read);
    });
    socket.on('message.part', (part: unknown) => this.#onPart(part));
    socket.on('disconnect', (reason) => {
      this.#setConnection(this.#disconnectedState());
      if (reason === 'io server disconnect') this.#retryLater('connect', () => socket.connect()); // token expired or revoked; the response to CONNECT tells which
    });
    socket.on('connect_error', (err) => {
      const code = text((err as { data?: Data }).data?.code);
      if (code === 'UNAUTHORIZED') return this.#unauthorized();
      if (code === 'ORIGIN_NOT_ALLOWED') {
        this.#emitError(new ApiError(403, code, err.message));
        return this.#refuse();
      }
      this.#setConnection(
        navigator.onLine
          ? this.state.connection === 'connecting'
            ? 'unavailable'
            : this.#disconnectedState()
          : 'offline',
      );
      if (code) this.#retryLater('connect', () => socket.connect()); // socket.io-client does not reconnect after a refused CONNECT
    });
    socket.on('token_expiring', () => void this.#renew());
  }

  /** Recovery fields for CONNECT: a new socket resumes the stream of another tab or the previous page. Later ones send their own. */
  #recoveryFields(socket: Socket): Data {
    const stored = this.storage.session().recovery;
    if (!stored || recoveryState(socket)._pid) return {};
    const { pid, offset, at } = stored;
    const hasHistory = this.state.older !== 'unknown';
    return hasHistory || Date.now() - at < RESUME_MAX_AGE ? { pid, offset } : {};
  }

  #storeRecovery(offset?: string): void {
    const { _pid, _lastOffset } = recoveryState(this.#socket!);
    if (_pid) this.storage.update({ recovery: { pid: _pid, offset: offset || _lastOffset, at: Date.now() } });
  }

  /** Renews the token within the session, with the old token and the registration fields. */
  async #renew(): Promise<void> {
    const generation = this.#generation;
    const known = this.#registration ?? this.storage.session().registration ?? this.#host.identity;
    if (!known) return;
    const body = { ...known, ...withoutEmpty(this.#host.identity ?? {}), appId: this.#host.appId };
    const token = await this.api.register(body, this.api.token).catch(() => '');
    // Another `sub` is another visitor: the application requires an identity proof that is missing here. Keep the old token.
    if (generation !== this.#generation || !token || claimsOf(token).sub !== claimsOf(this.api.token).sub) return;
    this.api.token = token;
    this.storage.update({ token });
    this.#socket?.emit('token', token);
  }

  /** Runs act after a delay in milliseconds. Except for the settings, it is dropped if the session has ended by then. */
  #retryLater(job: RetryJob, act: () => void, delay = 1_000 + Math.random() * 1_000): void {
    const generation = this.#generation;
    clearTimeout(this.#retries[job]);
    this.#retries[job] = setTimeout(() => (job === 'settings' || generation === this.#generation) && act(), delay);
  }

  #disconnect(): void {
    this.#socket?.removeAllListeners();
    this.#socket?.disconnect();
    this.#socket?.io.removeAllListeners?.();
    this.#socket = undefined;
  }

  #disconnectedState(): Connection {
    return navigator.onLine === false ? 'offline' : 'reconnecting';
  }

  #setConnection(connection: Connection): void {
    this.dispatch({ type: 'connection', connection });
    this.#post({ kind: 'connection', connection });
  }

  /** Loads the newest history pages until they overlap with the known messages. */
  async sync(): Promise<void> {
    const generation = this.#generation;
    this.#syncedAt = Date.now();
    clearTimeout(this.#retries.sync);
    void this.support.load();
    try {
      let before: string | undefined;
      for (let page = 0; page < MAX_GAP_PAGES; page++) {
        const { messages, more, readState } = await this.api.history(HISTORY_PAGE_SIZE, before);
        if (generation !== this.#generation) return;
        const first = this.state.messages.length === 0 || (page === 0 && this.state.older === 'unknown');
        const known = messages.some((m) => this.state.messages.some((k) => k.id === m.id));
        if (first) this.#earliest = { chatId: messages[0]?.chatId ?? '', more };
        this.#addHistory(messages, first || undefined, page > 0 || !first);
        if (page === 0) this.#applyReadState(readState);
        if (first || known || !more || !messages.length) break;
        before = messages[0]!.id;
      }
      this.#syncFailures = 0;
      this.#markAvailable();
    } catch (err) {
      if (generation !== this.#generation || !(err instanceof ApiError)) return;
      if (err.status === 404)
        return this.state.older === 'unknown' ? this.dispatch({ type: 'older', older: 'more' }) : undefined; // no open chat; the next message opens one
      if (err.status === 401) return this.#unauthorized();
      if (err.status === 403) return this.#blocked(err);
      // A gap stays until a sync succeeds: a socket that is connected delivers only what follows.
      const delay = Math.min(MAX_SYNC_DELAY, 1_000 * 2 ** this.#syncFailures++);
      if (err.isTemporary)
        this.#retryLater('sync', () => void this.sync(), Math.max(delay, err.retryAfter * 1_000) * (1 + Math.random()));
    }
  }

  #addHistory(messages: Message[], more: boolean | undefined, missed: boolean): void {
    const known = new Set(this.state.messages.map((m) => m.id));
    const last = this.state.messages.at(-1);
    this.dispatch({ type: 'messages', messages, ...(more !== undefined && { more }) });
    const reply = newestReply(this.state);
    if (reply) this.#typing.message(reply.createdAt);
    if (missed && last)
      for (const m of messages) if (!known.has(m.id) && m.isFromSupport && before(last, m)) this.#notifyMessage(m);
  }

  /** Applies the read state from the history response. */
  #applyReadState(r: ReadState): void {
    this.#advanceReadCursor(r.readUpTo);
    this.dispatch({ type: 'seen', upTo: r.seenUpTo });
  }

  /** Handles a `read` event: the company, or this visitor on another device, has advanced its read cursor. */
  #onRead(event: unknown): void {
    const { side, messageId, upTo } = object(event);
    if (side === 'visitor') this.#advanceReadCursor(text(messageId));
    else this.dispatch({ type: 'seen', upTo: text(upTo) });
  }

  #advanceReadCursor(id: string): void {
    const m = id && this.state.messages.find((k) => k.id === id);
    if (!m) return;
    const before = this.state.read;
    this.dispatch({ type: 'read', read: [m.createdAt, m.id] });
    if (this.state.read !== before) this.storage.update({ read: this.state.read });
  }

  /** Loads the page before the first message: of its chat, or if that begins there, of the chat before it. */
  async loadOlder(): Promise<void> {
    if (this.state.older !== 'more' && this.state.older !== 'failed') return;
    const generation = this.#generation;
    this.dispatch({ type: 'older', older: 'loading' });
    try {
      const sameChat = this.#earliest.more;
      const chatId = sameChat ? this.#earliest.chatId : await this.api.chatBefore(this.#earliest.chatId);
      if (generation !== this.#generation) return;
      if (!chatId && !sameChat) return this.dispatch({ type: 'older', older: 'none' });
      const { messages, more } = await this.api.history(
        HISTORY_PAGE_SIZE,
        sameChat ? this.state.messages[0]?.id : undefined,
        chatId,
      );
      if (generation !== this.#generation) return;
      this.#earliest = { chatId, more };
      const last = messages.at(-1);
      if (last && !sameChat) this.dispatch({ type: 'end', message: last });
      this.dispatch({ type: 'messages', messages, more: true });
    } catch (err) {
      if (generation !== this.#generation) return;
      if (err instanceof ApiError && err.status === 401) return this.#unauthorized();
      this.dispatch({ type: 'older', older: err instanceof ApiError && err.status === 404 ? 'none' : 'failed' });
    }
  }

  #onMessage(record: unknown, offset: string): void {
    const m = readMessage(record);
    if (!m) return;
    this.#post({ kind: 'message', message: m });
    this.#storeRecovery(offset); // socket.io-client sets its own copy only after this listener
    this.#addMessage(m);
  }

  /** Handles a `message.part` event. */
  #onPart(value: unknown): void {
    const part = readPart(value);
    if (!part) return;
    this.#post({ kind: 'part', part });
    this.#applyPart(part);
  }

  #applyPart(part: Part): void {
    const before = this.state.streaming;
    this.dispatch({ type: 'part', part });
    const { streaming } = this.state;
    if (!streaming || streaming === before) return;
    clearTimeout(this.#streamTimer);
    const { messageId } = streaming;
    if (streaming.done)
      this.#streamTimer = setTimeout(() => this.dispatch({ type: 'streamDropped', messageId }), FINAL_MESSAGE_TIMEOUT);
    else this.#streamTimer = setTimeout(() => this.dispatch({ type: 'streamStalled', messageId }), STREAM_TIMEOUT);
  }

  /** Stops the bot's stream; the text received so far stays. */
  stopStreaming(): void {
    const id = this.state.streaming?.messageId;
    if (id)
      void this.api
        .stop(id)
        .catch((err: unknown) =>
          err instanceof ApiError && (err.status === 404 || err.status === 409) ? undefined : this.#emitError(err),
        );
  }

  #addMessage(m: Message): void {
    if (this.state.messages.some((k) => k.id === m.id)) return;
    if (m.isFromSupport) this.#typing.message(m.createdAt);
    this.dispatch({ type: 'messages', messages: [m] });
    this.support.refreshAfter(m);
    this.#notifyMessage(m);
  }

  #notifyMessage(m: Message): void {
    this.#updateUnread();
    this.#host.emit('message', m);
    if (m.isFromSupport) this.config.onReply(m);
  }

  // Sending

  sendText(value: string): void {
    this.outbox.add({ type: 'TEXT', data: { text: value } });
    this.#afterSubmit();
  }

  choose(choice: { text: string; payload: string; replyTo: string }): void {
    this.outbox.add({ type: 'MULTIPLE_CHOICE_REPLY', data: { ...choice } });
    this.#afterSubmit();
  }

  async sendFile(file: File, caption: string): Promise<void> {
    await this.outbox.addFile(file, file.name || 'file', caption);
    this.#afterSubmit();
  }

  #afterSubmit(): void {
    this.#updateUnread();
    this.#tabs.checkLeader(); // a live leader must send it
  }

  /** The file size limit of the server; Infinity if unknown. Cached after the first request. */
  maxFileBytes(): Promise<number> {
    return (this.#maxFileBytes ??= this.api.limits().then(
      (l) => l.maxFileBytes || Infinity,
      () => {
        this.#maxFileBytes = undefined;
        return Infinity; // the server enforces the limit anyway
      },
    ));
  }

  /** Adds an offline message that the server has accepted. */
  addOfflineMessage(m: Message): void {
    this.dispatch({ type: 'messages', messages: [m] });
    this.#post({ kind: 'message', message: m });
    this.#updateUnread();
    this.#host.emit('message', m);
  }

  /** Sends a throttled `typing` event through the leader's socket. It is dropped while disconnected: a late one is useless. */
  readonly notifyTyping = throttle(() => {
    if (this.#tabs.isLeader) this.#emitTyping();
    else this.#post({ kind: 'writing' });
  });

  #emitTyping(): void {
    if (this.#socket?.connected) this.#socket.emit('typing');
  }

  discard(key: string): void {
    this.outbox.remove(key);
    this.#post({ kind: 'cancel', key });
  }

  /** `accepted` is the key of an item that another tab has sent; this tab's view of localStorage may still contain it. */
  #outboxChanged(accepted?: string): void {
    this.dispatch({ type: 'outbox', outbox: this.outbox.items.filter((i) => i.key !== accepted) });
  }

  #accepted(m: Message, key: string): void {
    this.#markAvailable();
    this.dispatch({ type: 'messages', messages: [m] });
    this.#outboxChanged();
    this.#post({ kind: 'message', message: m, key });
    this.support.refreshAfter(m);
    this.#updateUnread();
    this.#host.emit('message', m);
  }

  #progressed(key: string, share: number): void {
    this.dispatch({ type: 'progress', key, share });
    this.#post({ kind: 'progress', key, share });
  }

  #blocked(err: ApiError): void {
    if (err.status === 401) return this.#unauthorized();
    this.#emitError(err);
    if (err.status === 403) return this.#refuse();
    if (err.status === 429) return this.dispatch({ type: 'slow', slow: true });
    if (this.state.connection === 'online' || err.status !== 0)
      this.dispatch({ type: 'connection', connection: navigator.onLine === false ? 'offline' : 'unavailable' });
  }

  #markAvailable(): void {
    this.dispatch({ type: 'slow', slow: false });
    const c = this.state.connection;
    if (c === 'unavailable' && (this.#socket?.connected || !this.#tabs.isLeader))
      this.dispatch({ type: 'connection', connection: 'online' });
  }

  // Read cursor

  /** Moves the read cursor to the newest reply, which is visible. */
  markRead(): void {
    const m = newestReply(this.state);
    if (!m || !this.registered) return;
    const [at, id] = this.state.read;
    if (m.createdAt < at || (m.createdAt === at && m.id <= id)) return;
    this.dispatch({ type: 'read', read: [m.createdAt, m.id] });
    this.storage.update({ read: [m.createdAt, m.id] });
    this.#updateUnread();
    this.#sendReadCursor(m.id);
  }

  /** Sends the read cursor over the socket; over HTTP if disconnected or not acknowledged. */
  #sendReadCursor(id: string): void {
    const viaHttp = () => void this.api.read(id).catch(() => {}); // the next read cursor includes this one
    if (!this.#socket?.connected) return viaHttp();
    this.#socket.timeout(ACK_TIMEOUT).emit('read', { messageId: id }, (err: unknown, answer: unknown) => {
      if ((err || object(answer).ok !== true) && this.registered) viaHttp();
    });
  }

  setSound(on: boolean): void {
    this.dispatch({ type: 'sound', sound: on });
    if (this.registered) this.storage.update({ muted: !on || undefined });
  }

  setColours(back: string, front: string): void {
    this.#host.paint(back, front);
    if (this.registered) this.storage.update({ colours: [back, front] });
  }

  /** Updates the badge, and stores the unread count and pending work for the loader of the next page. */
  #updateUnread(): void {
    this.#host.badge(this.state.unread);
    if (!this.registered || this.#destroyed) return;
    const waits = this.outbox.pending || this.state.messages.at(-1)?.isFromSupport === false;
    const s = this.storage.session();
    if (s.token && ((s.unreadCount ?? 0) !== this.state.unread || !!s.pending !== waits))
      this.storage.update({ unreadCount: this.state.unread, pending: waits || undefined });
  }

  // Other tabs

  #post(event: TabEvent): void {
    this.#tabs.post(event);
  }

  #onTabEvent(e: TabEvent): void {
    switch (e.kind) {
      case 'message': {
        const m = readMessage(e.message);
        if (!m) return;
        if (e.key) this.#outboxChanged(e.key);
        if (m.isFromSupport) this.#addMessage(m);
        else {
          this.dispatch({ type: 'messages', messages: [m] });
          this.support.refreshAfter(m);
        }
        return;
      }
      case 'part': {
        const part = readPart(e.part);
        return part && this.#applyPart(part);
      }
      case 'progress':
        return this.dispatch({ type: 'progress', key: e.key, share: e.share });
      case 'cancel':
        return this.#tabs.isLeader ? this.outbox.remove(e.key) : this.#outboxChanged();
      case 'connection':
        if (this.#tabs.isLeader) return;
        if (e.connection === 'online' && this.state.connection !== 'online') void this.sync();
        return this.dispatch({ type: 'connection', connection: e.connection as Connection });
      case 'typing':
        return this.#typing.heard(e.name, e.at);
      case 'read':
        return this.#onRead(e.read);
      case 'writing':
        return this.#tabs.isLeader ? this.#emitTyping() : undefined;
      case 'ended':
        this.#endSession();
        return void this.storage.clear(); // including entries that this tab has written since
      case 'hello':
        if (!this.#tabs.isLeader) return;
        this.#post({ kind: 'connection', connection: this.state.connection });
        if (this.state.streaming) this.#post({ kind: 'part', part: { ...this.state.streaming, offset: 0 } });
        return;
    }
  }

  /** Handles a localStorage change by another tab. */
  readonly #onStorage = ({ key }: StorageEvent): void => {
    if (key && this.storage.isItem(key)) {
      this.#outboxChanged();
      this.#updateUnread();
      this.outbox.flush();
    } else if (!key || key === this.storage.key) this.#sessionChanged();
  };

  #sessionChanged(): void {
    const { token = '', read, muted } = this.storage.session();
    this.dispatch({ type: 'sound', sound: !muted });
    if (token && claimsOf(token).sub === claimsOf(this.api.token).sub) {
      this.api.token = token; // renewed
      if (read) this.dispatch({ type: 'read', read });
      return;
    }
    if (token === this.api.token) return;
    if (this.registered) this.#endSession();
    if (!token) return;
    this.#beginSession(token);
    if (this.state.settings) this.dispatch({ type: 'phase', phase: 'chat' });
  }

  // The page

  readonly #onOnline = (): void => {
    if (this.state.phase === 'failed') void this.#reload();
    if (!this.registered) return;
    if (this.#tabs.isLeader && !this.#socket?.connected) {
      this.#setConnection('reconnecting');
      this.#socket?.disconnect().connect();
    }
    this.outbox.flush();
  };

  readonly #onOffline = (): void => {
    if (this.registered) this.#setConnection('offline');
  };

  readonly #onVisibilityChange = (): void => {
    if (document.visibilityState !== 'visible' || !this.registered) return;
    this.#tabs.checkLeader();
    if (this.#tabs.isLeader && this.#socket && !this.#socket.connected && !this.#socket.active) this.#socket.connect();
    if (Date.now() - this.#syncedAt > SYNC_MAX_AGE) void this.sync();
    this.outbox.flush();
  };

  destroy(): void {
    this.#destroyed = true;
    this.#generation++;
    for (const timer of Object.values(this.#retries)) clearTimeout(timer);
    clearTimeout(this.#streamTimer);
    removeEventListener('online', this.#onOnline);
    removeEventListener('offline', this.#onOffline);
    removeEventListener('storage', this.#onStorage);
    document.removeEventListener('visibilitychange', this.#onVisibilityChange);
    this.outbox.stop();
    this.#typing.clear();
    this.#disconnect();
    this.#tabs.stop();
    this.storage.close();
    this.#listeners.clear();
  }

  /** Emits the `error` event. The console names what only the site's developer can correct, not a visitor's mistake in the form. */
  #emitError(err: unknown, log = true): void {
    const e = err instanceof ApiError ? err : undefined;
    const reason = `Parley ${this.#host.appId} on ${location.origin}: ${e?.code} ${e?.message}`;
    if (log && e && [400, 403, 404].includes(e.status) && !this.#reported.has(reason)) {
      this.#reported.add(reason);
      console.error(reason);
    }
    this.#host.emit('error', {
      code: e?.code ?? 'INTERNAL',
      status: e?.status ?? 0,
      message: e?.message ?? String(err),
    });
  }

  /** The public name of the state, for the `state` event. */
  #publicState(): string {
    return this.state.phase === 'chat' ? this.state.connection : this.state.phase;
  }
}

/** Private fields of socket.io-client: the recoverable session and the offset of the last event. */
const recoveryState = (socket: Socket) => socket as unknown as { _pid?: string; _lastOffset?: string };
