// Shrinks socket.io-client in the widget's bundle: drops code that browsers do not need or the gateway does not
// support. File and property names are those of the pinned version.

import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

const parser = fileURLToPath(new URL('src/state/parser.ts', import.meta.url));

/** HTTP long polling with XMLHttpRequest. Requests are aborted on pagehide without an error. */
const polling = `
  import { Polling } from './polling.js';
  const running = new Set();
  addEventListener('pagehide', () => {
    for (const xhr of running) {
      xhr.onreadystatechange = null;
      xhr.abort();
    }
    running.clear();
  });
  export class XHR extends Polling {
    doPoll() {
      this.request('GET', null, 'xhr poll error', (text) => this.onData(text));
    }
    doWrite(data, written) {
      this.request('POST', data, 'xhr post error', written);
    }
    request(method, body, problem, done) {
      const xhr = new XMLHttpRequest();
      running.add(xhr);
      xhr.open(method, this.uri());
      if (body) xhr.setRequestHeader('Content-Type', 'text/plain;charset=UTF-8');
      xhr.onreadystatechange = () => {
        if (xhr.readyState < 4) return;
        running.delete(xhr);
        if (xhr.status === 200) done(xhr.responseText);
        else this.onError(problem, xhr.status, xhr);
      };
      xhr.send(body);
    }
  }`;

/** The WebSocket transport, for browsers only. */
const websocket = `
  import { Transport } from '../transport.js';
  import { encodePacket } from 'engine.io-parser';
  export class WS extends Transport {
    get name() {
      return 'websocket';
    }
    doOpen() {
      try {
        this.ws = new WebSocket(this.createUri(this.opts.secure ? 'wss' : 'ws', this.query));
      } catch (err) {
        return this.emitReserved('error', err);
      }
      this.ws.onopen = () => this.onOpen();
      this.ws.onclose = (context) => this.onClose({ description: 'websocket connection closed', context });
      this.ws.onmessage = ({ data }) => this.onData(data);
      this.ws.onerror = (event) => this.onError('websocket error', event);
    }
    write(packets) {
      this.writable = false;
      for (const packet of packets) encodePacket(packet, true, (data) => this.transmit(data));
      queueMicrotask(() => { // drain must follow Socket.flush, which sets _prevBufferLen after send
        this.writable = true;
        this.emitReserved('drain');
      });
    }
    transmit(data) {
      try {
        this.ws.send(data);
      } catch {} // already closed; the close event follows
    }
    doClose() {
      if (!this.ws) return;
      this.ws.onerror = null;
      this.ws.close();
      this.ws = undefined;
    }
  }`;

/** The emitter, without the mixin and the aliases that socket.io-client does not use. */
const emitter = `
  export class Emitter {
    on(event, listener) {
      this._callbacks ??= {};
      (this._callbacks['$' + event] ??= []).push(listener);
      return this;
    }
    once(event, listener) {
      const on = (...args) => {
        this.off(event, on);
        listener.apply(this, args);
      };
      on.fn = listener;
      return this.on(event, on);
    }
    off(event, listener) {
      if (!arguments.length) this._callbacks = {};
      const listeners = this._callbacks?.['$' + event];
      if (!listeners) return this;
      const at = listeners.findIndex((l) => l === listener || l.fn === listener);
      if (at >= 0) listeners.splice(at, 1);
      if (arguments.length < 2 || !listeners.length) delete this._callbacks['$' + event];
      return this;
    }
    emit(event, ...args) {
      for (const listener of [...(this._callbacks?.['$' + event] ?? [])]) listener.apply(this, args);
      return this;
    }
  }
  const methods = Emitter.prototype;
  methods.removeListener = methods.removeAllListeners = methods.off;
  methods.emitReserved = methods.emit;`;

/** Timers, and the length of a text in a polling payload. */
const util = `
  export const installTimerFunctions = (of) => {
    of.setTimeoutFn = setTimeout.bind(globalThis);
    of.clearTimeoutFn = clearTimeout.bind(globalThis);
  };
  export const byteLength = (text) => new TextEncoder().encode(text).length;
  export const randomString = () =>
    Date.now().toString(36).substring(3) + Math.random().toString(36).substring(2, 5);`;

/** Methods of socket.io-client's Socket that the widget does not use: retries, listeners to all events, and others. */
const unused = `
  disconnected send emitWithAck compress volatile onAny prependAny offAny listenersAny onAnyOutgoing
  prependAnyOutgoing offAnyOutgoing listenersAnyOutgoing notifyOutgoingListeners _addToQueue _drainQueue
`
  .trim()
  .split(/\s+/)
  .map((name) => new RegExp(`\\n {4}(?:get )?${name}\\([^)\\n]*\\) \\{\\n[^]*?\\n {4}\\}(?=\\n)`, 'g'));

/** Statements of other methods that serve them. */
const serving = [
  /if \(this\._opts\.retries [\s\S]*?\n {8}\}/g,
  /if \(this\._anyListeners [\s\S]*?\n {8}\}/g,
  /this\.notifyOutgoingListeners\(\w+\);/g,
  /this\._drainQueue\(true\);/g,
  /this\._queue(?:Seq)? = [^;]+;/g,
];

/** Returns a source without the parts that match. Each must be there: another version may have them elsewhere. */
function without(source, parts) {
  for (const part of parts) {
    if (!part.test(source)) throw new Error(`socket.io-client has nothing like ${part}`);
    source = source.replace(part, '');
  }
  return source;
}

/**
 * An esbuild plugin that replaces modules of socket.io-client. It drops features that the gateway lacks (WebTransport,
 * binary attachments and binary frames), support for Node.js, React Native and browsers without URL, and the entry
 * point, which shares connections between callers.
 */
export const slim = {
  name: 'slim',
  setup(b) {
    b.onLoad({ filter: /engine\.io-client.*\/webtransport\.js$/ }, () => ({ contents: 'export class WT {}' }));
    b.onLoad({ filter: /engine\.io-client.*\/polling-xhr\.js$/ }, () => ({ contents: polling }));
    b.onLoad({ filter: /engine\.io-client.*\/websocket\.js$/ }, () => ({ contents: websocket }));
    b.onLoad({ filter: /engine\.io-client.*\/globals\.js$/ }, () => ({
      contents:
        'export const nextTick = queueMicrotask, globalThisShim = globalThis, defaultBinaryType = "arraybuffer", createCookieJar = () => {}',
    }));
    b.onLoad({ filter: /socket\.io-client\/build\/esm\/index\.js$/ }, () => ({
      contents: 'export { Manager } from "./manager.js"',
    }));
    b.onLoad({ filter: /component-emitter.*\/index\.js$/ }, () => ({ contents: emitter }));
    b.onLoad({ filter: /engine\.io-client.*\/util\.js$/ }, () => ({ contents: util }));
    b.onLoad({ filter: /engine\.io-client.*\/parseqs\.js$/ }, () => ({
      contents: `export const encode = (fields) => String(new URLSearchParams(fields));
        export const decode = (query) => Object.fromEntries(new URLSearchParams(query))`,
    }));
    b.onLoad({ filter: /socket\.io-client\/build\/esm\/socket\.js$/ }, async ({ path }) => ({
      contents: without(await readFile(path, 'utf8'), [...unused, ...serving]),
    }));
    b.onResolve({ filter: /^socket\.io-parser$/ }, () => ({ path: parser }));
    b.onLoad({ filter: /engine\.io-parser.*\/encodePacket\.browser\.js$/ }, () => ({
      contents:
        'import { PACKET_TYPES } from "./commons.js"; export const encodePacket = ({ type, data }, _, done) => done(PACKET_TYPES[type] + (data || "")), encodePacketToBinary = 0',
    }));
    b.onLoad({ filter: /engine\.io-parser.*\/decodePacket\.browser\.js$/ }, () => ({
      contents: `import { ERROR_PACKET, PACKET_TYPES_REVERSE } from './commons.js'; export const decodePacket = (text) => {
        const type = PACKET_TYPES_REVERSE[text[0]]; return type ? text[1] ? { type, data: text.slice(1) } : { type } : ERROR_PACKET }`,
    }));
    b.onLoad({ filter: /engine\.io-client.*\/parseuri\.js$/ }, () => ({
      contents: `export const parse = (uri) => { const { protocol, hostname, port, pathname, search } = new URL(uri);
        return { source: uri, protocol: protocol.slice(0, -1), host: hostname.replace(/[[\\]]/g, ''), port, path: pathname, query: search.slice(1) } }`,
    }));
  },
};

/**
 * Property names to mangle: internal to socket.io-client and its dependencies, or options and methods that the widget
 * does not use; invisible to pages and the browser. Names that it also uses as strings, such as `io["_destroy"]`, must
 * not be listed.
 */
export const names = `
  acks ackTimeout addTrailingSlash agent attempts _autoConnect autoConnect autoUnref backoff
  _beforeunloadEventListener binaryType _callbacks _clearAcks clearTimeoutFn _close closeOnBeforeunload compress
  cookieJar createTransport createUri doClose doOpen doPoll doWrite emitBuffered emitEvent emitReserved factor
  _filterUpgrades filterUpgrades forceBase64 _getWritablePackets hasListeners _hasPingExpired _hostname jitter
  _lastOffset _maxPayload maybeReconnectOnOpen nsps _offlineEventListener onack _onClose onClose onconnect
  ondecoded ondisconnect _onDrain _onError onevent onHandshake _onOpen onOpen onPacket onpacket _onPacket onping
  onreconnect _onTransportOpen _open _opts _packet _parser perMessageDeflate _pid _pingInterval _pingTimeout
  _pingTimeoutTime _pingTimeoutTimer _poll _polling _port _prevBufferLen priorWebsocketSuccess _probe
  _randomizationFactor randomizationFactor _readyState receiveBuffer reconnection _reconnection
  _reconnectionAttempts reconnectionAttempts reconnectionDelay _reconnectionDelay _reconnectionDelayMax
  reconnectionDelayMax recovered _registerAckCallback rejectUnauthorized rememberUpgrade _resetPingTimeout
  sendBuffer _sendConnectPacket _sendPacket setJitter setMax setMin setTimeoutFn setTransport skipReconnect
  subDestroy subEvents subs supportsBinary threshold _timeout timestampParam timestampRequests transmit
  transportImplementations transportOptions transports _transportsByName tryAllTransports _upgrades upgrading
  useNativeTimers withError writable writeBuffer
`
  .trim()
  .split(/\s+/);
