// Shrinks socket.io-client in the widget's bundle: drops code that browsers do not need or the gateway does not support.
// File and property names are those of the pinned version.

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

/**
 * An esbuild plugin that replaces modules of socket.io-client. It drops features that the gateway lacks (WebTransport, binary attachments
 * and binary frames), support for Node.js, React Native and browsers without URL, and the entry point, which shares connections between callers.
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
 * Property names to mangle: internal to socket.io-client and its dependencies, invisible to pages and the browser. Names that it also uses
 * as strings, such as `io["_destroy"]`, must not be listed.
 */
export const names =
  `_anyOutgoingListeners _anyListeners _callbacks _beforeunloadEventListener _offlineEventListener _opts _pingTimeoutTime
  _readyState _prevBufferLen _transportsByName _pingTimeoutTimer _pingInterval _pingTimeout _sendConnectPacket _filterUpgrades _addToQueue
  _hostname _port _poll _reconnectionAttempts _reconnection _reconnectionDelay _reconnectionDelayMax
  _randomizationFactor _upgrades _onClose _autoConnect _queue _queueSeq _drainQueue _parser _timeout _lastOffset _pid _registerAckCallback
  _open _close _packet _maxPayload _polling
  emitReserved setTimeoutFn clearTimeoutFn writeBuffer priorWebsocketSuccess subs upgrading withError createUri tryCount acks nsps fromQueue
  skipReconnect backoff transportImplementations
  receiveBuffer sendBuffer supportsBinary notifyOutgoingListeners emitBuffered maybeReconnectOnOpen onreconnect ondecoded subDestroy subEvents
  _resetPingTimeout _onPacket _onDrain _onError _onOpen _onTransportOpen _clearAcks _hasPingExpired _getWritablePackets _sendPacket _probe
  cookieJar onevent onack onpacket onconnect ondisconnect emitEvent onHandshake filterUpgrades createTransport setTransport
  reconnectionDelay reconnectionDelayMax reconnectionAttempts randomizationFactor reconnection autoUnref setJitter attempts jitter factor
  compress recovered volatile writable onPacket onOpen onClose`.split(/\s+/);
