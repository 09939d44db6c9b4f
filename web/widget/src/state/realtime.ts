/**
 * Owns the socket to the gateway: opens it, resumes the event stream where the last socket ended, and opens it again.
 * The other tabs get each event too, because only one tab has a socket.
 */
import { Manager, type Socket } from 'socket.io-client';
import { ApiError } from '@parley/shared/api.js';
import { object, readMessage, text, type Data, type Message } from '@parley/shared/message.js';
import { readPart, type Part } from '@parley/shared/parts.js';
import type { Connection, Store } from './reducer.js';
import type { Storage } from './storage.js';
import type { Tabs } from './tabs.js';

/** Maximum age of the stored recovery state for a new page; with an older one the page loads the history instead. */
const RESUME_MAX_AGE = 60_000;
/** Timeout for the acknowledgement of a `read` event. */
const ACK_TIMEOUT = 5_000;

export interface RealtimeConfig {
  api: { readonly base: string; readonly token: string };
  store: Store;
  storage: Storage;
  /** Whether to try WebSocket. */
  websocket: boolean;
  tabs: Pick<Tabs, 'post'>;
  /** `recovered` says that the server replays the events that were missed. */
  onConnected(recovered: boolean): void;
  onMessage(m: Message): void;
  onPart(part: Part): void;
  onRead(event: unknown): void;
  onTyping(name: string, at: string): void;
  onTokenExpiring(): void;
  /** The gateway rejects the token or the site. */
  blocked(err: ApiError): void;
}

export class Realtime {
  #socket: Socket | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly config: RealtimeConfig) {}

  get connected(): boolean {
    return !!this.#socket?.connected;
  }

  connect(): void {
    if (this.#socket) return;
    const { api, websocket } = this.config;
    const at = new URL(api.base);
    const manager = new Manager(at.origin, {
      path: `${at.pathname}socket.io/`,
      upgrade: websocket,
      reconnectionDelay: 300,
      reconnectionDelayMax: 5_000,
      timeout: 10_000,
    });
    const socket: Socket = manager.socket('/message', {
      auth: (give) => give({ token: api.token, ...this.#recoveryFields(socket) }),
    });
    this.#socket = socket;
    this.#listen(socket);
  }

  #listen(socket: Socket): void {
    const { onConnected, onPart, onRead, onTyping, onTokenExpiring, tabs } = this.config;
    socket.on('connect', () => {
      this.setConnection('online');
      this.#storeRecovery(socket);
      onConnected(socket.recovered);
    });
    socket.on('message', (record: unknown, offset: unknown) => this.#onMessage(socket, record, text(offset)));
    socket.on('message.part', (value: unknown) => {
      const part = readPart(value);
      if (!part) return;
      tabs.post({ kind: 'part', part });
      onPart(part);
    });
    socket.on('typing', (e: unknown) => {
      const [name, at] = [text(object(e).name), text(object(e).at)];
      onTyping(name, at);
      tabs.post({ kind: 'typing', name, at });
    });
    socket.on('read', (read: unknown) => {
      tabs.post({ kind: 'read', read });
      onRead(read);
    });
    socket.on('token_expiring', () => onTokenExpiring());
    socket.on('disconnect', (reason) => {
      this.setConnection(disconnectedState());
      // The token has expired or is revoked; the response to CONNECT tells which.
      if (reason === 'io server disconnect') this.#connectLater(socket);
    });
    socket.on('connect_error', (err) => this.#onConnectError(socket, err));
  }

  #onMessage(socket: Socket, record: unknown, offset: string): void {
    const message = readMessage(record);
    if (!message) return;
    // In this order: a tab that takes over from the offset would not get the message again.
    this.config.tabs.post({ kind: 'message', message });
    this.#storeRecovery(socket, offset); // socket.io-client sets its own copy only after this listener
    this.config.onMessage(message);
  }

  #onConnectError(socket: Socket, err: Error): void {
    const { blocked, store } = this.config;
    const code = text((err as { data?: Data }).data?.code);
    if (code === 'UNAUTHORIZED') return blocked(new ApiError(401, code, err.message));
    if (code === 'ORIGIN_NOT_ALLOWED') return blocked(new ApiError(403, code, err.message));
    const lost = disconnectedState();
    const neverConnected = lost === 'reconnecting' && store.state.connection === 'connecting';
    this.setConnection(neverConnected ? 'unavailable' : lost);
    if (code) this.#connectLater(socket); // socket.io-client does not reconnect after a refused CONNECT
  }

  #connectLater(socket: Socket): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => socket.connect(), 1_000 + Math.random() * 1_000);
  }

  /**
   * Recovery fields for CONNECT: a new socket resumes the stream of another tab or the previous page. Later ones send
   * their own.
   */
  #recoveryFields(socket: Socket): Data {
    const { store, storage } = this.config;
    const stored = storage.session().recovery;
    if (!stored || recoveryState(socket)._pid) return {};
    const hasHistory = store.state.older !== 'unknown';
    const { pid, offset, at } = stored;
    return hasHistory || Date.now() - at < RESUME_MAX_AGE ? { pid, offset } : {};
  }

  #storeRecovery(socket: Socket, offset?: string): void {
    const { _pid, _lastOffset } = recoveryState(socket);
    if (!_pid) return;
    const recovery = { pid: _pid, offset: offset || _lastOffset, at: Date.now() };
    this.config.storage.update({ recovery });
  }

  disconnect(): void {
    clearTimeout(this.#timer);
    this.#socket?.removeAllListeners();
    this.#socket?.disconnect();
    this.#socket?.io.removeAllListeners?.();
    this.#socket = undefined;
  }

  /** Connects at once instead of after the delay of socket.io-client: the network is back. */
  reconnectNow(): void {
    if (this.connected) return;
    this.setConnection('reconnecting');
    this.#socket?.disconnect().connect();
  }

  /** Connects if nothing is going to: the browser has suspended the page. */
  wake(): void {
    if (this.#socket && !this.connected && !this.#socket.active) this.#socket.connect();
  }

  /** Shows the connection in all tabs. */
  setConnection(connection: Connection): void {
    this.config.store.dispatch({ type: 'connection', connection });
    this.config.tabs.post({ kind: 'connection', connection });
  }

  /** Sends that the visitor is typing. Dropped while disconnected: a late one is useless. */
  sendTyping(): void {
    if (this.connected) this.#socket!.emit('typing');
  }

  /** Sends the read cursor; calls `otherwise` if disconnected or not acknowledged. */
  sendRead(messageId: string, otherwise: () => void): void {
    if (!this.connected) return otherwise();
    this.#socket!.timeout(ACK_TIMEOUT).emit('read', { messageId }, (err: unknown, answer: unknown) => {
      if (err || object(answer).ok !== true) otherwise();
    });
  }

  /** Gives the gateway a renewed token. */
  sendToken(token: string): void {
    this.#socket?.emit('token', token);
  }
}

const disconnectedState = (): Connection => (navigator.onLine === false ? 'offline' : 'reconnecting');

/** Private fields of socket.io-client: the recoverable session and the offset of the last event. */
const recoveryState = (socket: Socket) => socket as unknown as { _pid?: string; _lastOffset?: string };
