/** The Widget API over HTTP. */
import { list, object, readMessage, text, type Data, type Message } from './message.js';

export interface Settings { id: string; botName: string; name: string; widgetConfigs: Data }

export interface FieldError { field: string; message: string }

/** An answer that is not 2xx, or none at all: then the status is 0. */
export class ApiError extends Error {
  constructor(readonly status: number, readonly code: string, message: string, readonly details: FieldError[] = [], readonly retryAfter = 0) {
    super(message);
  }
}

export interface Page { messages: Message[]; more: boolean; reading: Reading }

/** What the server says beside the newest page of the history; empty where it does not say it. */
export interface Reading {
  /** Id of the newest message that the visitor has read, here or elsewhere. */
  readUpTo: string;
  /** Up to when the company has read what the visitor wrote. */
  seenUpTo: string;
  agents: string;
}

export interface Upload { promise: Promise<Message>; abort(): void }

/** The visitor's latest chat, and whether agents are there. */
export interface ChatState {
  chatId: string;
  status: string;
  waiting: boolean;
  handoverBy: string;
  handoverOffered: boolean;
  /** Until when it may be rated; empty: it may not. */
  rateableUntil: string;
  rating?: { score: number; comment: string };
  available: boolean;
  opensAt: string;
}

export interface Limits { maxFileBytes: number }

/** One base address, and the token of one visitor. */
export class Api {
  token = '';

  constructor(readonly base: string) {}

  /** `early` is an answer that has been asked for already. */
  async settings(appId: string, early?: Response): Promise<Settings> {
    const s = object(await (early?.ok ? early.json() : this.#json('GET', `settings/${encodeURIComponent(appId)}`)));
    return { id: text(s.id), botName: text(s.botName), name: text(s.name), widgetConfigs: object(s.widgetConfigs) };
  }

  async limits(): Promise<Limits> {
    const l = object(await this.#json('GET', 'widget/limits.json'));
    return { maxFileBytes: Number(l.maxFileBytes) || 0 };
  }

  /** With `token` it renews that one: the same visitor goes on. */
  async register(body: Data, token = ''): Promise<string> {
    const headers = token ? { Authorization: `Bearer ${token}` } : undefined;
    return text(object(await this.#json('POST', 'register', body, headers)).accessToken);
  }

  async history(limit: number, before?: string): Promise<Page> {
    const query = before ? `&before=${encodeURIComponent(before)}` : '';
    const answer = await this.#fetch('GET', `message?limit=${limit}${query}`);
    const messages = list(await answer.json()).map(readMessage).filter((m): m is Message => !!m);
    const header = (name: string) => answer.headers.get(name) ?? '';
    const reading = { readUpTo: header('Parley-Read-Up-To'), seenUpTo: header('Parley-Seen-Up-To'), agents: header('Parley-Agents') };
    return { messages, more: /rel="?next/.test(header('Link')), reading };
  }

  async send(body: Data, key: string): Promise<Message> {
    return accepted(await this.#json('POST', 'message', body, { 'Idempotency-Key': key }));
  }

  read(id: string): Promise<Response> {
    return this.#fetch('POST', `message/${encodeURIComponent(id)}/read`);
  }

  /** The visitor wants no more of a message that a bot is writing. */
  stop(id: string): Promise<Response> {
    return this.#fetch('POST', `message/${encodeURIComponent(id)}/stop`);
  }

  async chat(): Promise<ChatState> {
    return chatState(await this.#json('GET', 'chat'));
  }

  async handOver(): Promise<ChatState> {
    return chatState(await this.#json('POST', 'chat/handover'));
  }

  async leaveMessage(body: Data, key: string): Promise<Message> {
    return accepted(await this.#json('POST', 'chat/offline-message', body, { 'Idempotency-Key': key }));
  }

  async rate(chatId: string, body: Data): Promise<ChatState> {
    return chatState(await this.#json('POST', `chat/${encodeURIComponent(chatId)}/rating`, body));
  }

  /** Sends a file. XMLHttpRequest, because fetch does not tell how far it is. */
  upload(file: Blob, name: string, caption: string, key: string, progress: (share: number) => void): Upload {
    const form = new FormData();
    if (caption) form.append('caption', caption);
    form.append('file', file, name);
    const xhr = new XMLHttpRequest();
    const promise = new Promise<Message>((resolve, reject) => {
      xhr.open('POST', this.base + 'message');
      xhr.setRequestHeader('Authorization', `Bearer ${this.token}`);
      xhr.setRequestHeader('Idempotency-Key', key);
      xhr.upload.onprogress = (e) => e.lengthComputable && progress(e.loaded / e.total);
      xhr.onload = () => {
        const body = parse(xhr.responseText);
        if (xhr.status < 300) resolve(accepted(body));
        else reject(problem(xhr.status, body, xhr.getResponseHeader('Retry-After')));
      };
      xhr.onerror = xhr.onabort = xhr.ontimeout = () => reject(new ApiError(0, 'NETWORK', 'network'));
      xhr.send(form);
    });
    return { promise, abort: () => xhr.abort() };
  }

  async #json(method: string, path: string, body?: Data, headers: Record<string, string> = {}): Promise<unknown> {
    return (await this.#fetch(method, path, body, headers)).json();
  }

  async #fetch(method: string, path: string, body?: Data, headers: Record<string, string> = {}): Promise<Response> {
    if (/^(message|chat)/.test(path)) headers.Authorization = `Bearer ${this.token}`;
    if (body) headers['Content-Type'] = 'application/json';
    let answer: Response;
    try {
      answer = await fetch(this.base + path, { method, headers, credentials: 'omit', ...(body && { body: JSON.stringify(body) }) });
    } catch {
      throw new ApiError(0, 'NETWORK', 'network');
    }
    if (!answer.ok) throw problem(answer.status, parse(await answer.text().catch(() => '')), answer.headers.get('Retry-After'));
    return answer;
  }
}

function chatState(value: unknown): ChatState {
  const c = object(value);
  const [agents, rating] = [object(c['agents']), object(c['rating'])];
  return {
    chatId: text(c.chatId), status: text(c.status), waiting: c.waiting === true, handoverBy: text(c.handoverBy), handoverOffered: c.handoverOffered === true,
    rateableUntil: text(c.rateableUntil), available: agents.available !== false, opensAt: text(agents.opensAt),
    ...(Number(rating.score) && { rating: { score: Number(rating.score), comment: text(rating.comment) } }),
  };
}

function accepted(value: unknown): Message {
  const m = readMessage(value);
  if (!m) throw new ApiError(502, 'MALFORMED', 'malformed answer');
  return m;
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return {};
  }
}

function problem(status: number, body: unknown, retryAfter: string | null): ApiError {
  const e = object(body);
  const details = list(e.details).map((d) => ({ field: text(d.field), message: text(d.message) }));
  return new ApiError(status, text(e.code), text(e.message), details, Number(retryAfter) || 0);
}
