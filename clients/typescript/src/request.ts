import { ParleyError } from './error.js';
import { isRetryable, pauseBefore, sleep, type RetryOptions } from './retry.js';

/** An operation of an API, as in the generated tables. */
export interface Operation {
  readonly method: string;
  readonly path: string;
  /** Whether the operation accepts an Idempotency-Key. */
  readonly keyed: boolean;
  readonly answer: 'json' | 'none' | 'raw';
}

/** The options of a client. */
export interface Options {
  /** The address of the API, such as `https://api.example.com`. */
  baseUrl: string;
  /** The token, or a function that returns the current one. Without it, requests have no token. */
  accessToken?: string | (() => string | undefined);
  retry?: RetryOptions;
  /** The timeout of one attempt in milliseconds; 30,000 by default, 0: no timeout. */
  timeout?: number;
  /** Replaces the global fetch. */
  fetch?: typeof fetch;
}

/** The parameters of a call. */
export interface Call {
  path?: Record<string, string | number>;
  query?: Record<string, unknown>;
  headers?: Record<string, unknown>;
  body?: unknown;
  /** Makes repeated calls with the same key take effect once; by default each call has its own key. */
  idempotencyKey?: string;
  signal?: AbortSignal;
}

/** Sends a call, retries it when that is safe, and returns the successful response. */
export async function send(
  options: Options,
  header: (token: string) => [string, string],
  operation: Operation,
  call: Call,
): Promise<Response> {
  const url = urlOf(options.baseUrl, operation.path, call);
  const repeatable = operation.method === 'GET' || operation.keyed;
  const headers = headersOf(options, header, call);
  if (operation.keyed)
    headers.set('idempotency-key', call.idempotencyKey ?? headers.get('idempotency-key') ?? crypto.randomUUID());
  const body = bodyOf(call.body, headers);

  for (let attempt = 1; ; attempt++) {
    let failure: unknown;
    let retryAfter: string | null = null;
    try {
      const response = await (options.fetch ?? fetch)(url, {
        method: operation.method,
        headers,
        body,
        signal: signalOf(options, call),
        redirect: 'manual',
      });
      if (response.ok) return response;
      retryAfter = response.headers.get('retry-after');
      failure = await ParleyError.from(response);
    } catch (error) {
      failure = error;
    }
    call.signal?.throwIfAborted();
    const pause = pauseBefore(attempt, retryAfter, options.retry ?? {});
    if (attempt >= (options.retry?.attempts ?? 4) || pause === undefined || !isRetryable(failure, repeatable))
      throw failure;
    await sleep(pause, call.signal);
  }
}

function urlOf(baseUrl: string, path: string, call: Call): URL {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = call.path?.[name];
    if (value === undefined || value === '') throw new TypeError(`path.${name} is missing`);
    return encodeURIComponent(value);
  });
  const url = new URL(baseUrl.replace(/\/+$/, '') + filled);
  for (const [name, value] of Object.entries(call.query ?? {})) {
    if (value !== undefined && value !== null) url.searchParams.set(name, String(value));
  }
  return url;
}

function headersOf(options: Options, header: (token: string) => [string, string], call: Call): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(call.headers ?? {})) {
    if (value !== undefined && value !== null) headers.set(name, String(value));
  }
  const token = typeof options.accessToken === 'function' ? options.accessToken() : options.accessToken;
  if (token) headers.set(...header(token));
  return headers;
}

function bodyOf(body: unknown, headers: Headers): FormData | string | undefined {
  if (body === undefined || body instanceof FormData) return body;
  headers.set('content-type', 'application/json');
  return JSON.stringify(body);
}

function signalOf(options: Options, call: Call): AbortSignal | undefined {
  const timeout = options.timeout ?? 30_000;
  const signals = [call.signal, timeout > 0 ? AbortSignal.timeout(timeout) : undefined].filter((s) => s !== undefined);
  return signals.length > 1 ? AbortSignal.any(signals) : signals[0];
}
