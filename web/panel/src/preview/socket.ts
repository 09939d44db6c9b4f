import type { Message } from '@parley/shared/message.js';
import { handle, type Backend } from './server.js';

/**
 * Replaces XMLHttpRequest in the preview. It answers long polling of Engine.IO protocol 4 with the Socket.IO protocol 5 packets that one
 * namespace needs.
 */
export class FakeRequest extends EventTarget {
  static backend: Backend;
  static #queue: string[] = [];
  static #waiting: FakeRequest | undefined;
  static #offset = 0;

  static emit(m: Message): void {
    FakeRequest.#send(`42/message,${JSON.stringify(['message', m, String(++FakeRequest.#offset)])}`);
  }

  static #send(packet: string): void {
    FakeRequest.#queue.push(packet);
    const w = FakeRequest.#waiting;
    FakeRequest.#waiting = undefined;
    if (w) w.#flush();
  }

  /** Drops the connection of a destroyed widget. */
  static reset(): void {
    FakeRequest.#queue = [];
    FakeRequest.#waiting = undefined;
  }

  readyState = 0;
  status = 0;
  responseText = '';
  response = '';
  responseType = '';
  timeout = 0;
  withCredentials = false;
  readonly upload: { onprogress?: (e: { lengthComputable: boolean; loaded: number; total: number }) => void } = {};
  onreadystatechange: (() => void) | null = null;
  onload: (() => void) | null = null;
  onerror: (() => void) | null = null;
  #method = 'GET';
  #url = new URL(location.href);
  #aborted = false;

  open(method: string, url: string): void {
    this.#method = method;
    this.#url = new URL(url, location.href);
    this.readyState = 1;
  }

  setRequestHeader(): void {}
  setDisableHeaderCheck(): void {}
  getResponseHeader(): null {
    return null;
  }

  abort(): void {
    this.#aborted = true;
    if (FakeRequest.#waiting === this) FakeRequest.#waiting = undefined;
  }

  send(body?: unknown): void {
    if (!this.#url.pathname.startsWith('/socket.io')) {
      const file = body instanceof FormData ? body.get('file') : null;
      const data =
        file instanceof File
          ? {
              fileName: file.name,
              size: file.size,
              mime: file.type,
              caption: String((body as FormData).get('caption') ?? ''),
            }
          : {};
      void handle(FakeRequest.backend, 'POST', this.#url.pathname, { type: 'FILE', data }).then(({ status, json }) =>
        this.#done(JSON.stringify(json), status),
      );
      return;
    }
    if (this.#method === 'POST') {
      for (const packet of String(body).split('\x1e'))
        if (packet.startsWith('40/message')) FakeRequest.#send('40/message,{"sid":"preview","pid":"preview"}');
      return this.#done('ok');
    }
    if (!this.#url.searchParams.get('sid'))
      return this.#done(
        '0{"sid":"preview","upgrades":[],"pingInterval":3600000,"pingTimeout":3600000,"maxPayload":1000000}',
      );
    FakeRequest.#waiting = this;
    if (FakeRequest.#queue.length) FakeRequest.#send(FakeRequest.#queue.pop()!);
  }

  #flush(): void {
    const packets = FakeRequest.#queue;
    FakeRequest.#queue = [];
    this.#done(packets.join('\x1e'));
  }

  #done(text: string, status = 200): void {
    setTimeout(() => {
      if (this.#aborted) return;
      Object.assign(this, { readyState: 4, status, responseText: text, response: text });
      this.onreadystatechange?.();
      this.onload?.();
    });
  }
}
