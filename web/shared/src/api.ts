/** The Widget API over HTTP. */
import { list, object, readMessage, text, type Data, type Message } from './message.js';

export interface Settings {
  id: string;
  botName: string;
  name: string;
  widgetConfigs: Data;
}

export interface FieldError {
  field: string;
  message: string;
}

/** A response other than 2xx. Status 0 is a network error. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly details: FieldError[] = [],
    readonly retryAfter = 0,
  ) {
    super(message);
  }

  /** Whether the same request may succeed later. */
  get isTemporary(): boolean {
    return this.status === 0 || this.status >= 500 || [408, 409, 425, 429].includes(this.status);
  }
}

export interface Page {
  messages: Message[];
  more: boolean;
  readState: ReadState;
}

/** Read state from the response headers of the newest history page. Fields without a header are empty. */
export interface ReadState {
  /** Id of the newest message that the visitor has read on any device. */
  readUpTo: string;
  /** The company has read the visitor's messages up to this time. */
  seenUpTo: string;
}

export interface Upload {
  promise: Promise<Message>;
  abort(): void;
}

/** The visitor's latest chat and the availability of agents. */
export interface ChatState {
  chatId: string;
  status: string;
  /** Who answers: bot or agent. */
  control: string;
  waiting: boolean;
  handoverBy: string;
  handoverOffered: boolean;
  /** End of the rating period; empty if the chat cannot be rated. */
  rateableUntil: string;
  rating?: { score: number; comment: string };
  /** It is within the business hours. */
  available: boolean;
  /** An agent has the panel open, or the server does not know. */
  online: boolean;
  opensAt: string;
}

export interface Limits {
  maxFileBytes: number;
}

/** A client for one base URL and one visitor's token. */
export class Api {
  token = '';

  constructor(readonly base: string) {}

  /** `prefetched` is the response of a request that is already under way. */
  async settings(appId: string, prefetched?: Response): Promise<Settings> {
    const s = object(
      await (prefetched?.ok ? prefetched.json() : this.#json('GET', `settings/${encodeURIComponent(appId)}`)),
    );
    return { id: text(s.id), botName: text(s.botName), name: text(s.name), widgetConfigs: object(s.widgetConfigs) };
  }

  async limits(): Promise<Limits> {
    const l = object(await this.#json('GET', 'widget/limits.json'));
    return { maxFileBytes: Number(l.maxFileBytes) || 0 };
  }

  /** Registers a visitor and returns the access token. With `token`, renews that token for the same visitor. */
  async register(body: Data, token = ''): Promise<string> {
    const headers = token ? { Authorization: `Bearer ${token}` } : undefined;
    return text(object(await this.#json('POST', 'register', body, headers)).accessToken);
  }

  /** A page of the history of a chat, by default of the open one. */
  async history(limit: number, before?: string, chatId?: string): Promise<Page> {
    const query = before ? `&before=${encodeURIComponent(before)}` : '';
    const response = await this.#fetch(
      'GET',
      `${chatId ? `chats/${chatId}/messages` : 'message'}?limit=${limit}${query}`,
    );
    const messages = list(await response.json())
      .map(readMessage)
      .filter((m): m is Message => !!m);
    const header = (name: string) => response.headers.get(name) ?? '';
    const readState = { readUpTo: header('Parley-Read-Up-To'), seenUpTo: header('Parley-Seen-Up-To') };
    return { messages, more: /rel="?next/.test(header('Link')), readState };
  }

  /** The id of the visitor's chat before that one, by default of the latest; empty without one. */
  async chatBefore(chatId: string): Promise<string> {
    const [c] = list(await this.#json('GET', `chats?limit=1${chatId && `&after=${chatId}`}`));
    return text(c?.chatId);
  }

  async send(body: Data, key: string): Promise<Message> {
    return parseMessage(await this.#json('POST', 'message', body, { 'Idempotency-Key': key }));
  }

  read(id: string): Promise<Response> {
    return this.#fetch('POST', `message/${encodeURIComponent(id)}/read`);
  }

  /** Stops a message that a bot is streaming. */
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
    return parseMessage(await this.#json('POST', 'chat/offline-message', body, { 'Idempotency-Key': key }));
  }

  async rate(chatId: string, body: Data): Promise<ChatState> {
    return chatState(await this.#json('POST', `chat/${encodeURIComponent(chatId)}/rating`, body));
  }

  /** Uploads a file. Uses XMLHttpRequest because fetch reports no upload progress. */
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
        const body = parseJson(xhr.responseText);
        if (xhr.status < 300) resolve(parseMessage(body));
        else reject(apiError(xhr.status, body, xhr.getResponseHeader('Retry-After')));
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
    let response: Response;
    try {
      response = await fetch(this.base + path, {
        method,
        headers,
        credentials: 'omit',
        ...(body && { body: JSON.stringify(body) }),
      });
    } catch {
      throw new ApiError(0, 'NETWORK', 'network');
    }
    if (!response.ok)
      throw apiError(
        response.status,
        parseJson(await response.text().catch(() => '')),
        response.headers.get('Retry-After'),
      );
    return response;
  }
}

function chatState(value: unknown): ChatState {
  const c = object(value);
  const [agents, rating] = [object(c['agents']), object(c['rating'])];
  return {
    chatId: text(c.chatId),
    status: text(c.status),
    control: text(c.control),
    waiting: c.waiting === true,
    handoverBy: text(c.handoverBy),
    handoverOffered: c.handoverOffered === true,
    rateableUntil: text(c.rateableUntil),
    available: agents.available !== false,
    online: agents['online'] !== false,
    opensAt: text(agents.opensAt),
    ...(Number(rating.score) && { rating: { score: Number(rating.score), comment: text(rating.comment) } }),
  };
}

function parseMessage(value: unknown): Message {
  const m = readMessage(value);
  if (!m) throw new ApiError(502, 'MALFORMED', 'malformed response');
  return m;
}

function parseJson(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return {};
  }
}

function apiError(status: number, body: unknown, retryAfter: string | null): ApiError {
  const e = object(body);
  const details = list(e.details).map((d) => ({ field: text(d.field), message: text(d.message) }));
  return new ApiError(status, text(e.code), text(e.message), details, Number(retryAfter) || 0);
}
