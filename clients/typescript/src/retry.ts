import { ParleyError } from './error.js';

/** Retry policy of a request. */
export interface RetryOptions {
  /** Maximum attempts of a call, including the first one; 4 by default, 1: no retries. */
  attempts?: number;
  /** The first pause in milliseconds, doubled after each attempt, with random jitter; 250 by default. */
  pause?: number;
  /** The longest pause in milliseconds; 30,000 by default. A longer Retry-After ends the call with the error. */
  maxPause?: number;
}

/** Returns the pause in milliseconds before the next attempt, at least Retry-After; undefined if Retry-After exceeds the maximum pause. */
export function pauseBefore(
  retry: number,
  retryAfter: string | null,
  options: RetryOptions,
  now: number = Date.now(),
): number | undefined {
  const maxPause = options.maxPause ?? 30_000;
  const backoff = Math.min((options.pause ?? 250) * 2 ** (retry - 1), maxPause) * (0.5 + Math.random() / 2);
  const requested = parseRetryAfter(retryAfter, now);
  return requested > maxPause ? undefined : Math.max(backoff, requested);
}

/** Parses Retry-After, seconds or a date (RFC 9110, section 10.2.3), and returns milliseconds. */
function parseRetryAfter(retryAfter: string | null, now: number): number {
  if (retryAfter === null) return 0;
  if (/^\d+$/.test(retryAfter)) return Number(retryAfter) * 1000;
  const at = Date.parse(retryAfter);
  return Number.isNaN(at) ? 0 : Math.max(0, at - now);
}

/**
 * Reports whether a failed attempt may be repeated. 429 and 503 mean that nothing was accepted. Other failures of the server or the
 * connection may happen after the request took effect, so only idempotent requests are retried.
 */
export function isRetryable(failure: unknown, repeatable: boolean): boolean {
  if (!(failure instanceof ParleyError)) return repeatable;
  if (failure.status === 429 || failure.status === 503) return true;
  return repeatable && (failure.status >= 500 || failure.code === 'IDEMPOTENCY_KEY_IN_USE');
}

/** Resolves after a time; rejects with the signal's reason if it aborts earlier. */
export function sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const abort = () => {
      clearTimeout(timer);
      reject(signal!.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort);
      resolve();
    }, milliseconds);
    signal?.addEventListener('abort', abort, { once: true });
  });
}
