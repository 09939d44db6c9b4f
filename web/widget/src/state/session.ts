import { Manager, type Socket } from 'socket.io-client';
import { Api, ApiError, type Reading, type Settings } from '@parley/shared/api.js';
import { object, readMessage, text, type Data, type Message } from '@parley/shared/message.js';
import { throttle, Typing } from '@parley/shared/typing.js';
import { readPart, type Part } from '@parley/shared/parts.js';
import type { Host, Identity } from '../host.js';
import { Outbox } from './outbox.js';
import { initial, newestReply, reduce, type Action, type Connection, type State } from './reducer.js';
import { Support } from './support.js';
import { Storage } from './storage.js';
import { Tabs, type TabEvent } from './tabs.js';

const PAGE = 50;
/** Pages that are read to find the end of a gap; further back the visitor scrolls. */
const GAP_PAGES = 20;
/** For how long a page that begins goes on in the stream where the last one was; later the history has all of it. */
const HANDOVER = 60_000;
/** A token is renewed when this share of its time is left. */
const LAST_PART = 0.2;
/** How long a bot may be silent in the middle of a message before nobody waits for more of it: longer than the bot itself waits. */
const SILENCE = 40_000;
/** How long the message may take after its last part. */
const REPLACED = 5_000;
/** How long a tab may have slept before it asks for what it missed. */
const STALE = 30_000;
/** How long the server may take to say that it has noted what was read; then the Widget API is told. */
const ACK = 5_000;

export interface SessionConfig {
  host: Host;
  /** A message of the other side has come while the page is open. */
  arrived(m: Message): void;
}

/** The one model of a widget: it talks to the server and to the other tabs, and the screen shows its state. */
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
  /** Rises with each session, so that answers of an old one are recognised. */
  #era = 0;
  #registration: Data | undefined;
  #identified = '';
  #syncedAt = 0;
  #maxFileBytes: Promise<number> | undefined;
  #ended = false;
  #retry: ReturnType<typeof setTimeout> | undefined;
  readonly #typing = new Typing((names) => this.dispatch({ type: 'typing', names }));
  #silence: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly config: SessionConfig) {
    this.#host = config.host;
    this.api = new Api(config.host.base);
    this.storage = new Storage(config.host.key);
    this.outbox = new Outbox({
      storage: this.storage,
      transport: this.api,
      maySend: () => this.#tabs.leads && !!this.api.token && !this.#ended,
      changed: () => this.#outboxChanged(),
      accepted: (m, key) => this.#accepted(m, key),
      progress: (key, share) => this.#progressed(key, share),
      blocked: (err) => this.#blocked(err),
    });
    this.#tabs = new Tabs({ name: config.host.key, alone: this.storage.blocked, heard: (e) => this.#heard(e), lead: (leads) => this.#lead(leads) });
    addEventListener('online', this.#online);
    addEventListener('offline', this.#offline);
    addEventListener('storage', this.#stored);
    document.addEventListener('visibilitychange', this.#visible);
  }

  subscribe(f: () => void): () => void {
    this.#listeners.add(f);
    return () => this.#listeners.delete(f);
  }

  dispatch(a: Action): void {
    const before = this.state;
    this.state = reduce(before, a);
    if (this.state === before) return;
    if (this.state.connection !== before.connection || this.state.phase !== before.phase) this.#host.emit('state', this.#word());
    if (this.state.unread !== before.unread) this.#remember();
    for (const f of [...this.#listeners]) f();
  }

  get registered(): boolean {
    return !!this.api.token;
  }

  /** Loads the settings and goes on with the stored session, if there is one. */
  async start(): Promise<void> {
    const stored = this.storage.session();
    this.dispatch({ type: 'sound', sound: !stored.s });
    this.dispatch({ type: 'read', read: stored.r ?? ['', ''] });
    if (stored.t) this.#enter(stored.t);
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
    if (this.#ended) return;
    this.dispatch({ type: 'settings', settings });
    if (this.registered) this.dispatch({ type: 'phase', phase: 'chat' });
    else if (!(await this.#registerSilently()) && this.state.phase !== 'form') this.dispatch({ type: 'phase', phase: 'form', ...(this.state.notice && { notice: this.state.notice }) });
  }

  #settingsFailed(err: unknown): void {
    if (this.#ended) return;
    const status = err instanceof ApiError ? err.status : 0;
    const final = status === 403 || status === 404;
    this.#report(err);
    this.dispatch({ type: 'phase', phase: final ? 'refused' : 'failed' });
    if (!final) this.#retry = setTimeout(() => void this.#reload(), 5_000);
  }

  async #reload(): Promise<void> {
    clearTimeout(this.#retry);
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

  /** The fields that the form shows: what the settings name, less what the site has said. */
  get formFields(): { name: string; required: boolean }[] {
    const c = this.state.settings?.widgetConfigs ?? {};
    const required = names(c.requiredFields);
    const given = this.#host.identity ?? {};
    return [...new Set([...names(c.formInputs), ...required])]
      .filter((name) => !given[name])
      .map((name) => ({ name, required: required.includes(name) }));
  }

  /** Registers without a form where the site has said who the visitor is, or nobody asks. It does so only once the chat is open. */
  async #registerSilently(): Promise<boolean> {
    if (!this.state.open) return false;
    const fields = this.formFields;
    const known = this.#host.identity;
    if (fields.some((f) => f.required)) return false;
    if (!known && fields.length) return false;
    return this.register({});
  }

  /** The visitor has opened the chat: what was waiting for that can happen. */
  opened(): void {
    this.dispatch({ type: 'open', open: true });
    if (this.state.phase === 'form' && !this.registered) void this.#registerSilently();
    this.#tabs.check();
  }

  async register(fields: Record<string, string>): Promise<boolean> {
    const body: Data = { ...clean(this.#host.identity ?? {}), ...clean(fields), appId: this.#host.appId };
    if (!body.email && !body.phone && !body.userId && !body.identityToken) body.userId = `web-${crypto.randomUUID()}`;
    this.dispatch({ type: 'form', form: { busy: true, errors: {}, problem: '' } });
    try {
      const token = await this.api.register(body);
      if (this.#ended) return false;
      this.#identified = fingerprint(this.#host.identity);
      this.storage.update({ t: token, u: { ...body, identityToken: undefined }, i: this.#identified || undefined, n: 0, w: true, p: undefined });
      this.#enter(token);
      this.#registration = body;
      this.dispatch({ type: 'phase', phase: 'chat' });
      this.#host.emit('registered', { chatUserId: text(claimsOf(token).sub) });
      return true;
    } catch (err) {
      if (this.#ended) return false;
      const e = err instanceof ApiError ? err : undefined;
      const errors = Object.fromEntries((e?.details ?? []).map((d) => [d.field, d.message]));
      this.dispatch({ type: 'phase', phase: 'form' });
      this.dispatch({ type: 'form', form: { busy: false, errors, problem: e?.message || 'network' } });
      this.#report(err);
      return false;
    }
  }

  /** The site says who the visitor is. A session of somebody else ends. */
  identify(): void {
    const now = fingerprint(this.#host.identity);
    const stored = this.storage.session();
    if (this.registered) {
      if (now && now !== (this.#identified || stored.i)) {
        this.#leave();
        void this.register({});
      }
      return;
    }
    if (this.state.phase === 'form') void this.#registerSilently();
  }

  /** Ends the session in all tabs, and removes all that the widget has stored in this browser. */
  end(): void {
    this.#post({ kind: 'ended' });
    this.#leave();
    void this.storage.clear();
  }

  // One session

  #enter(token: string): void {
    this.api.token = token;
    this.#era++;
    const stored = this.storage.session();
    this.dispatch({ type: 'read', read: stored.r ?? ['', ''] });
    this.dispatch({ type: 'skipped', chatId: stored.q ?? '' });
    this.#outboxChanged();
    this.dispatch({ type: 'connection', connection: 'connecting' });
    this.#tabs.start();
    if (!this.#tabs.leads) void this.sync();
  }

  /** Ends the session here, and leaves what is stored alone. */
  #leave(notice?: State['notice']): void {
    this.#era++;
    this.api.token = '';
    this.#registration = undefined;
    this.#disconnect();
    this.#tabs.stop();
    this.#typing.clear();
    this.dispatch({ type: 'ended', ...(notice && { notice }) });
    this.#host.badge(0);
  }

  /** The server does not take the token any more. Who the site knows comes back without a question. */
  #unauthorized(): void {
    if (!this.registered) return;
    const again = this.#registration ?? (this.#host.identity && {});
    this.#leave('sessionEnded');
    this.storage.update({ t: undefined, n: 0, w: undefined });
    if (again) void this.register(again as Record<string, string>);
  }

  #lead(leads: boolean): void {
    if (!this.registered || this.#ended) return;
    if (!leads) {
      this.#disconnect();
      return;
    }
    this.#connect();
    this.outbox.kick();
    const { iat, exp } = claimsOf(this.api.token) as { iat: number; exp: number };
    if (exp - Date.now() / 1000 < (exp - iat) * LAST_PART) void this.#renew();
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
    const socket = (this.#socket = manager.socket('/message', { auth: (give) => give({ token: this.api.token, ...this.#resume(socket) }) }));
    socket.on('connect', () => {
      this.#connection('online');
      this.#mark();
      // What passed by is in the stream if the server recovered the session, else in the history.
      if (!socket.recovered || this.state.older === 'unknown') void this.sync();
      this.outbox.kick();
    });
    socket.on('message', (record: unknown) => this.#received(record));
    socket.on('typing', (e: unknown) => {
      const [name, at] = [text(object(e).name), text(object(e).at)];
      this.#typing.heard(name, at);
      this.#post({ kind: 'typing', name, at });
    });
    socket.on('read', (read: unknown) => {
      this.#post({ kind: 'read', read });
      this.#cursor(read);
    });
    socket.on('message.part', (part: unknown) => this.#writes(part));
    socket.on('disconnect', (reason) => {
      this.#connection(this.#broken());
      if (reason === 'io server disconnect') this.#later(() => socket.connect()); // the token has expired or was revoked: CONNECT says which
    });
    socket.on('connect_error', (err) => {
      const code = text((err as { data?: Data }).data?.code);
      if (code === 'UNAUTHORIZED') return this.#unauthorized();
      if (code === 'ORIGIN_NOT_ALLOWED') return this.dispatch({ type: 'phase', phase: 'refused' });
      this.#connection(navigator.onLine ? (this.state.connection === 'connecting' ? 'unavailable' : this.#broken()) : 'offline');
      if (code) this.#later(() => socket.connect()); // after a refusal the client does not try again by itself
    });
    socket.on('token_expiring', () => void this.#renew());
  }

  /** What a new socket shows to go on where that of another tab, or of the last page, has ended. Its own it shows by itself. */
  #resume(socket: Socket): Data {
    const [pid, offset, at] = this.storage.session().p ?? [];
    const fresh = this.state.older !== 'unknown' || Date.now() - at! < HANDOVER;
    return pid && fresh && !place(socket)._pid ? { pid, offset } : {};
  }

  #mark(): void {
    const { _pid, _lastOffset } = place(this.#socket!);
    if (_pid) this.storage.update({ p: [_pid, _lastOffset, Date.now()] });
  }

  /** Renews the token in place: the visitor shows the old one and says again who they are. */
  async #renew(): Promise<void> {
    const era = this.#era;
    const known = this.#registration ?? this.storage.session().u ?? this.#host.identity;
    if (!known) return;
    const body = { ...known, ...clean(this.#host.identity ?? {}), appId: this.#host.appId };
    const token = await this.api.register(body, this.api.token).catch(() => '');
    // Another visitor's: the application asks for a proof that we do not have.
    if (era !== this.#era || !token || claimsOf(token).sub !== claimsOf(this.api.token).sub) return;
    this.api.token = token;
    this.storage.update({ t: token });
    this.#socket?.emit('token', token);
  }

  #later(act: () => void): void {
    const era = this.#era;
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => era === this.#era && !this.#ended && act(), 1_000 + Math.random() * 1_000);
  }

  #disconnect(): void {
    this.#socket?.removeAllListeners();
    this.#socket?.disconnect();
    this.#socket?.io.removeAllListeners?.();
    this.#socket = undefined;
  }

  #broken(): Connection {
    return navigator.onLine === false ? 'offline' : 'reconnecting';
  }

  #connection(connection: Connection): void {
    this.dispatch({ type: 'connection', connection });
    this.#post({ kind: 'connection', connection });
  }

  /** Reads what the history has that is not shown yet. */
  async sync(): Promise<void> {
    const era = this.#era;
    this.#syncedAt = Date.now();
    void this.support.load();
    try {
      let before: string | undefined;
      for (let page = 0; page < GAP_PAGES; page++) {
        const { messages, more, reading } = await this.api.history(PAGE, before);
        if (era !== this.#era) return;
        const first = this.state.messages.length === 0 || (page === 0 && this.state.older === 'unknown');
        const known = messages.some((m) => this.state.messages.some((k) => k.id === m.id));
        this.#show(messages, first ? more : undefined, page > 0 || !first);
        if (page === 0) this.#told(reading);
        if (first || known || !more || !messages.length) break;
        before = messages[0]!.id;
      }
      if (this.state.older === 'unknown') this.dispatch({ type: 'older', older: 'none' });
      this.#available();
    } catch (err) {
      if (era !== this.#era || !(err instanceof ApiError)) return;
      if (err.status === 401) return this.#unauthorized();
      if (err.status === 404) return this.dispatch({ type: 'older', older: 'none' }); // no open chat: the next message opens one
      if (this.state.older === 'unknown') this.#later(() => void this.sync());
    }
  }

  #show(messages: Message[], more: boolean | undefined, missed: boolean): void {
    const known = new Set(this.state.messages.map((m) => m.id));
    const last = this.state.messages.at(-1);
    this.dispatch({ type: 'messages', messages, ...(more !== undefined && { more }) });
    const reply = newestReply(this.state);
    if (reply) this.#typing.message(reply.createdAt);
    if (missed && last) for (const m of messages) if (!known.has(m.id) && m.isFromSupport && m.createdAt > last.createdAt) this.#arrived(m);
  }

  /** What the server knows of reading, and of who is there. */
  #told(r: Reading): void {
    this.#readElsewhere(r.readUpTo);
    this.dispatch({ type: 'seen', upTo: r.seenUpTo });
    this.dispatch({ type: 'agents', agents: r.agents === 'online' });
  }

  /** A side has read further: the company, or this visitor on another device. */
  #cursor(event: unknown): void {
    const { side, messageId, upTo } = object(event);
    if (side === 'visitor') this.#readElsewhere(text(messageId));
    else this.dispatch({ type: 'seen', upTo: text(upTo) });
  }

  #readElsewhere(id: string): void {
    const m = id && this.state.messages.find((k) => k.id === id);
    if (!m) return;
    const before = this.state.read;
    this.dispatch({ type: 'read', read: [m.createdAt, m.id] });
    if (this.state.read !== before) this.storage.update({ r: this.state.read });
  }

  async loadOlder(): Promise<void> {
    const first = this.state.messages[0];
    if (!first || (this.state.older !== 'more' && this.state.older !== 'failed')) return;
    const era = this.#era;
    this.dispatch({ type: 'older', older: 'loading' });
    try {
      const { messages, more } = await this.api.history(PAGE, first.id);
      if (era === this.#era) this.dispatch({ type: 'messages', messages, more });
    } catch (err) {
      if (era !== this.#era) return;
      if (err instanceof ApiError && err.status === 401) return this.#unauthorized();
      this.dispatch({ type: 'older', older: err instanceof ApiError && err.status === 404 ? 'none' : 'failed' });
    }
  }

  #received(record: unknown): void {
    const m = readMessage(record);
    if (!m) return;
    this.#post({ kind: 'message', message: m });
    this.#mark();
    this.#take(m);
  }

  /** A bot writes. What it has written goes when the message comes, or when it does not. */
  #writes(value: unknown): void {
    const part = readPart(value);
    if (!part) return;
    this.#post({ kind: 'part', part });
    this.#extend(part);
  }

  #extend(part: Part): void {
    const before = this.state.writing;
    this.dispatch({ type: 'part', part });
    const { writing } = this.state;
    if (!writing || writing === before) return;
    clearTimeout(this.#silence);
    const { messageId } = writing;
    if (writing.done) this.#silence = setTimeout(() => this.dispatch({ type: 'dropped', messageId }), REPLACED);
    else this.#silence = setTimeout(() => this.dispatch({ type: 'silent', messageId }), SILENCE);
  }

  /** The visitor wants no more of what the bot writes. What it has written stays. */
  stopWriting(): void {
    const id = this.state.writing?.messageId;
    if (id) void this.api.stop(id).catch((err: unknown) => (err instanceof ApiError && (err.status === 404 || err.status === 409) ? undefined : this.#report(err)));
  }

  #take(m: Message): void {
    if (this.state.messages.some((k) => k.id === m.id)) return;
    if (m.isFromSupport) this.#typing.message(m.createdAt);
    const first = this.state.older === 'unknown'; // the history is on its way: this is part of what was before
    this.dispatch({ type: 'messages', messages: [m] });
    this.support.arrived(m);
    if (!first) this.#arrived(m);
  }

  #arrived(m: Message): void {
    this.#remember();
    this.#host.emit('message', m);
    if (m.isFromSupport) this.config.arrived(m);
  }

  // Sending

  sendText(value: string): void {
    this.outbox.add({ type: 'TEXT', data: { text: value } });
    this.#sent();
  }

  choose(choice: { text: string; payload: string; replyTo: string }): void {
    this.outbox.add({ type: 'MULTIPLE_CHOICE_REPLY', data: { ...choice } });
    this.#sent();
  }

  async sendFile(file: File, caption: string): Promise<void> {
    await this.outbox.addFile(file, file.name || 'file', caption);
    this.#sent();
  }

  #sent(): void {
    this.#remember();
    this.#tabs.check(); // somebody must send it
  }

  /** How large a file may be. The server says so before the first one is sent. */
  maxFileBytes(): Promise<number> {
    return (this.#maxFileBytes ??= this.api.limits().then(
      (l) => l.maxFileBytes || Infinity,
      () => {
        this.#maxFileBytes = undefined;
        return Infinity; // the server checks it again
      },
    ));
  }

  /** An offline message is in the history. */
  left(m: Message): void {
    this.dispatch({ type: 'messages', messages: [m] });
    this.#post({ kind: 'message', message: m });
    this.#remember();
    this.#host.emit('message', m);
  }

  /** The visitor types. One tab has the socket; what cannot be said now is worth nothing later. */
  readonly writing = throttle(() => {
    if (this.#tabs.leads) this.#sayTyping();
    else this.#post({ kind: 'writing' });
  });

  #sayTyping(): void {
    if (this.#socket?.connected) this.#socket.emit('typing');
  }

  discard(key: string): void {
    this.outbox.remove(key);
    this.#post({ kind: 'cancel', key });
  }

  /** `accepted` is the key of an item that another tab has sent: the storage may still show it. */
  #outboxChanged(accepted?: string): void {
    this.dispatch({ type: 'outbox', outbox: this.outbox.items.filter((i) => i.key !== accepted) });
  }

  #accepted(m: Message, key: string): void {
    this.#available();
    this.dispatch({ type: 'messages', messages: [m] });
    this.#outboxChanged();
    this.#post({ kind: 'message', message: m, key });
    this.support.arrived(m);
    this.#remember();
    this.#host.emit('message', m);
  }

  #progressed(key: string, share: number): void {
    this.dispatch({ type: 'progress', key, share });
    this.#post({ kind: 'progress', key, share });
  }

  #blocked(err: ApiError): void {
    if (err.status === 401) return this.#unauthorized();
    if (err.status === 403) return this.dispatch({ type: 'phase', phase: 'refused' });
    this.#report(err);
    if (err.status === 429) return this.dispatch({ type: 'slow', slow: true });
    if (this.state.connection === 'online' || err.status !== 0) this.dispatch({ type: 'connection', connection: navigator.onLine === false ? 'offline' : 'unavailable' });
  }

  #available(): void {
    this.dispatch({ type: 'slow', slow: false });
    const c = this.state.connection;
    if (c === 'unavailable' && (this.#socket?.connected || !this.#tabs.leads)) this.dispatch({ type: 'connection', connection: 'online' });
  }

  // Reading

  /** The visitor sees the newest message. */
  markRead(): void {
    const m = newestReply(this.state);
    if (!m || !this.registered) return;
    const [at, id] = this.state.read;
    if (m.createdAt < at || (m.createdAt === at && m.id <= id)) return;
    this.dispatch({ type: 'read', read: [m.createdAt, m.id] });
    this.storage.update({ r: [m.createdAt, m.id] });
    this.#remember();
    this.#sayRead(m.id);
  }

  /** Over the socket where there is one; else, or when it is not acknowledged, over HTTP. */
  #sayRead(id: string): void {
    const otherwise = () => void this.api.read(id).catch(() => {}); // the next one says it again
    if (!this.#socket?.connected) return otherwise();
    this.#socket.timeout(ACK).emit('read', { messageId: id }, (err: unknown, answer: unknown) => {
      if ((err || object(answer).ok !== true) && this.registered) otherwise();
    });
  }

  setSound(on: boolean): void {
    this.dispatch({ type: 'sound', sound: on });
    if (this.registered) this.storage.update({ s: !on || undefined });
  }

  setColours(back: string, front: string): void {
    this.#host.paint(back, front);
    if (this.registered) this.storage.update({ c: [back, front] });
  }

  /** Leaves for the loader of the next page what it needs to know. */
  #remember(): void {
    this.#host.badge(this.state.unread);
    if (!this.registered || this.#ended) return;
    const waits = this.outbox.pending || this.state.messages.at(-1)?.isFromSupport === false;
    const s = this.storage.session();
    if (s.t && ((s.n ?? 0) !== this.state.unread || !!s.w !== waits)) this.storage.update({ n: this.state.unread, w: waits || undefined });
  }

  // Other tabs

  #post(event: TabEvent): void {
    this.#tabs.post(event);
  }

  #heard(e: TabEvent): void {
    switch (e.kind) {
      case 'message': {
        const m = readMessage(e.message);
        if (!m) return;
        if (e.key) this.#outboxChanged(e.key);
        if (m.isFromSupport) this.#take(m);
        else {
          this.dispatch({ type: 'messages', messages: [m] });
          this.support.arrived(m);
        }
        return;
      }
      case 'part': {
        const part = readPart(e.part);
        return part && this.#extend(part);
      }
      case 'progress':
        return this.dispatch({ type: 'progress', key: e.key, share: e.share });
      case 'cancel':
        return this.#tabs.leads ? this.outbox.remove(e.key) : this.#outboxChanged();
      case 'connection':
        if (this.#tabs.leads) return;
        if (e.connection === 'online' && this.state.connection !== 'online') void this.sync();
        return this.dispatch({ type: 'connection', connection: e.connection as Connection });
      case 'typing':
        return this.#typing.heard(e.name, e.at);
      case 'read':
        return this.#cursor(e.read);
      case 'writing':
        return this.#tabs.leads ? this.#sayTyping() : undefined;
      case 'ended':
        this.#leave();
        return void this.storage.clear(); // what this tab has written meanwhile
      case 'hello':
        if (!this.#tabs.leads) return;
        this.#post({ kind: 'connection', connection: this.state.connection });
        if (this.state.writing) this.#post({ kind: 'part', part: { ...this.state.writing, offset: 0 } });
        return;
    }
  }

  /** Another tab has changed what is stored, and this one sees it now. */
  readonly #stored = ({ key }: StorageEvent): void => {
    if (key?.startsWith(`${this.storage.key}.o.`)) {
      this.#outboxChanged();
      this.#remember();
      this.outbox.kick();
    } else if (!key || key === this.storage.key) this.#sessionChanged();
  };

  #sessionChanged(): void {
    const { t = '', r, s } = this.storage.session();
    this.dispatch({ type: 'sound', sound: !s });
    if (t && claimsOf(t).sub === claimsOf(this.api.token).sub) {
      this.api.token = t; // renewed
      if (r) this.dispatch({ type: 'read', read: r });
      return;
    }
    if (t === this.api.token) return;
    if (this.registered) this.#leave();
    if (!t) return;
    this.#enter(t);
    if (this.state.settings) this.dispatch({ type: 'phase', phase: 'chat' });
  }

  // The page

  readonly #online = (): void => {
    if (!this.registered) {
      if (this.state.phase === 'failed') void this.#reload();
      return;
    }
    if (this.#tabs.leads && !this.#socket?.connected) {
      this.#connection('reconnecting');
      this.#socket?.disconnect().connect();
    }
    this.outbox.kick();
  };

  readonly #offline = (): void => {
    if (this.registered) this.#connection('offline');
  };

  readonly #visible = (): void => {
    if (document.visibilityState !== 'visible' || !this.registered) return;
    this.#tabs.check();
    if (this.#tabs.leads && this.#socket && !this.#socket.connected && !this.#socket.active) this.#socket.connect();
    if (Date.now() - this.#syncedAt > STALE) void this.sync();
    this.outbox.kick();
  };

  /** A page that comes out of the back/forward cache has lost its socket and its lock. */
  destroy(): void {
    this.#ended = true;
    this.#era++;
    clearTimeout(this.#retry);
    clearTimeout(this.#silence);
    removeEventListener('online', this.#online);
    removeEventListener('offline', this.#offline);
    removeEventListener('storage', this.#stored);
    document.removeEventListener('visibilitychange', this.#visible);
    this.outbox.stop();
    this.#typing.clear();
    this.#disconnect();
    this.#tabs.stop();
    this.storage.close();
    this.#listeners.clear();
  }

  #report(err: unknown): void {
    const e = err instanceof ApiError ? err : undefined;
    this.#host.emit('error', { code: e?.code ?? 'INTERNAL', status: e?.status ?? 0, message: e?.message ?? String(err) });
  }

  /** The state in one word, for the site. */
  #word(): string {
    return this.state.phase === 'chat' ? this.state.connection : this.state.phase;
  }
}

const names = (value: unknown): string[] => (Array.isArray(value) ? value.filter((v): v is string => typeof v === 'string' && v !== '') : []);

function clean(fields: Record<string, unknown>): Data {
  return Object.fromEntries(Object.entries(fields).filter(([, v]) => v !== undefined && v !== null && v !== ''));
}

/** Tells two people apart without keeping who they are. */
function fingerprint(identity: Identity | undefined): string {
  const who = identity?.userId ?? identity?.email ?? identity?.phone ?? '';
  if (!who) return '';
  let h = 0x811c9dc5;
  for (const c of String(who)) h = Math.imul(h ^ c.codePointAt(0)!, 0x01000193) >>> 0;
  return h.toString(36);
}

/** What a token says, without a check: the server has made it. */
function claimsOf(token: string): Data {
  try {
    return JSON.parse(atob(token.split('.')[1]!.replace(/-/g, '+').replace(/_/g, '/'))) as Data;
  } catch {
    return {};
  }
}

/** What the official client keeps to itself: the session that the server can recover, and the last event's offset. */
const place = (socket: Socket) => socket as unknown as { _pid?: string; _lastOffset?: string };

export type { Settings };
