import { ApiError, type FieldError } from '@parley/shared/api.js';
import { list, object, text } from '@parley/shared/message.js';
import { strings } from '../strings.js';

export { ApiError };

/** The request ids of failed calls, for reports to the operator. */
const requestIds = new WeakMap<object, string>();

export const requestIdOf = (err: unknown): string =>
  typeof err === 'object' && err ? (requestIds.get(err) ?? '') : '';

/** Returns the message of an error for the user. */
export function messageOf(err: unknown): string {
  if (!(err instanceof ApiError)) return strings.unexpected;
  if (err.status === 0) return strings.offlineError;
  if (err.status === 429) return strings.tooMany(err.retryAfter);
  if (err.status === 503) return strings.unavailable;
  if (err.details.length) return err.details.map((d) => `${d.field} ${d.message}`).join('; ');
  return strings.codes[err.code] ?? (err.message || strings.unexpected);
}

/** Returns the error of each field, by its path. */
export function fieldErrors(err: unknown): Record<string, string> {
  return err instanceof ApiError ? Object.fromEntries(err.details.map((d) => [d.field, capital(d.message)])) : {};
}

const capital = (s: string) => s.charAt(0).toUpperCase() + s.slice(1) + (s.endsWith('.') ? '' : '.');

export const isStatus = (err: unknown, status: number): boolean => err instanceof ApiError && err.status === status;
export const isCode = (err: unknown, code: string): boolean => err instanceof ApiError && err.code === code;

type Query = Record<string, string | number | boolean | undefined>;

export interface Call {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  query?: Query;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** The client of the panel's API, on the same origin. The session is in an HttpOnly cookie; the script only holds the CSRF token. */
export class Client {
  csrfToken = '';
  /** The company that an operator has selected. */
  companyId = '';
  /** Called when the session has expired while the page is open. */
  onSignedOut: () => void = () => {};

  url(path: string, query: Query = {}): string {
    const all = new URLSearchParams();
    for (const [key, value] of Object.entries({ ...(this.companyId && { companyId: this.companyId }), ...query }))
      if (value !== undefined && value !== '') all.set(key, String(value));
    const text = all.toString();
    return `/api/${path}${text ? `?${text}` : ''}`;
  }

  async call<T>(path: string, { method = 'GET', query, body, headers = {}, signal }: Call = {}): Promise<T> {
    const init: RequestInit = {
      method,
      headers: { Accept: 'application/json', ...headers },
      credentials: 'same-origin',
      keepalive: method !== 'GET' && body === undefined /* goes on when the page is left */,
      ...(signal && { signal }),
    };
    const sent = init.headers as Record<string, string>;
    if (method !== 'GET') sent['X-CSRF-Token'] = this.csrfToken || 'none';
    if (body instanceof Blob) {
      sent['Content-Type'] = body.type;
      init.body = body;
    } else if (body !== undefined) {
      sent['Content-Type'] = 'application/json';
      init.body = JSON.stringify(body);
    }
    let response: Response;
    try {
      response = await fetch(this.url(path, query), init);
    } catch (err) {
      if (signal?.aborted) throw err;
      throw new ApiError(0, 'NETWORK', 'network');
    }
    const raw = await response.text().catch(() => '');
    if (!response.ok) throw this.#problem(response.status, parse(raw), response.headers.get('Retry-After'));
    return (raw ? parse(raw) : undefined) as T;
  }

  /** Uploads a file with XMLHttpRequest, because fetch reports no upload progress. */
  upload<T>(
    path: string,
    form: FormData,
    headers: Record<string, string>,
    progress: (share: number) => void,
  ): { promise: Promise<T>; abort(): void } {
    const xhr = new XMLHttpRequest();
    const promise = new Promise<T>((resolve, reject) => {
      xhr.open('POST', this.url(path));
      for (const [key, value] of Object.entries({ ...headers, 'X-CSRF-Token': this.csrfToken }))
        xhr.setRequestHeader(key, value);
      xhr.upload.onprogress = (e) => e.lengthComputable && progress(e.loaded / e.total);
      xhr.onload = () =>
        xhr.status < 300
          ? resolve(parse(xhr.responseText) as T)
          : reject(this.#problem(xhr.status, parse(xhr.responseText), xhr.getResponseHeader('Retry-After')));
      xhr.onerror = xhr.ontimeout = () => reject(new ApiError(0, 'NETWORK', 'network'));
      xhr.onabort = () => reject(new ApiError(0, 'ABORTED', 'aborted'));
      xhr.send(form);
    });
    return { promise, abort: () => xhr.abort() };
  }

  #problem(status: number, body: unknown, retryAfter: string | null): ApiError {
    const e = object(body);
    const details: FieldError[] = list(e.details).map((d) => ({ field: text(d.field), message: text(d.message) }));
    const err = new ApiError(status, text(e.code), text(e.message), details, Number(retryAfter) || 0);
    if (text(e.requestId)) requestIds.set(err, text(e.requestId));
    if (status === 401 && err.code === 'UNAUTHORIZED') this.onSignedOut();
    return err;
  }
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

export const client = new Client();
