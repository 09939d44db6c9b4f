import type { webhooks } from './generated/webhooks.js';

/** An event that Parley posts to a webhook endpoint. */
export type WebhookEvent = {
  [Type in keyof webhooks]: webhooks[Type]['post']['requestBody']['content']['application/json'];
}[keyof webhooks];

/** A webhook request with an invalid signature or timestamp. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError';
}

/** Options of the verification. */
export interface WebhookOptions {
  /** Accepted deviation of webhook-timestamp in seconds; 300 by default. */
  tolerance?: number;
  /** The time, in milliseconds since 1970; Date.now() by default. */
  now?: number;
}

/** Headers of a request, from fetch or node:http. */
export type WebhookHeaders = Headers | Record<string, string | string[] | undefined>;

/**
 * Verifies a request to a webhook endpoint (Standard Webhooks) and returns its event; throws a WebhookVerificationError.
 *
 * @param keys the endpoint's secret (`whsec_...`) or public key (`whpk_...`), or several of them during a rotation
 * @param body the body exactly as received
 */
export async function verifyWebhook(
  keys: string | readonly string[],
  body: string | Uint8Array,
  headers: WebhookHeaders,
  options: WebhookOptions = {},
): Promise<WebhookEvent> {
  const [id, timestamp, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) =>
    header(headers, name),
  );
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  const off = Math.abs((options.now ?? Date.now()) / 1000 - Number(timestamp));
  if (!/^\d+$/.test(timestamp!) || off > (options.tolerance ?? 300))
    throw new WebhookVerificationError('webhook-timestamp is too old or too new');

  const content = concat(new TextEncoder().encode(`${id}.${timestamp}.`), bytes);
  const candidates = signatures!.split(' ').map((signature) => signature.split(','));
  for (const key of typeof keys === 'string' ? [keys] : keys) {
    const { version, verify } = await verifierOf(key);
    for (const [scheme, signature] of candidates) {
      if (scheme === version && (await verify(decode(signature ?? ''), content)))
        return JSON.parse(new TextDecoder().decode(bytes)) as WebhookEvent;
    }
  }
  throw new WebhookVerificationError('no signature matches');
}

async function verifierOf(key: string) {
  const [, kind, encoded] = key.match(/^(whsec_|whpk_)(.+)$/) ?? [];
  const raw = decode(encoded ?? '');
  if (!kind || raw.length === 0) throw new TypeError('a webhook key must be whsec_ or whpk_ followed by base64');
  const algorithm = kind === 'whsec_' ? { name: 'HMAC', hash: 'SHA-256' } : { name: 'Ed25519' };
  const imported = await crypto.subtle.importKey('raw', raw, algorithm, false, ['verify']);
  return {
    version: kind === 'whsec_' ? 'v1' : 'v1a',
    verify: (signature: Bytes, content: Bytes) => crypto.subtle.verify(algorithm.name, imported, signature, content),
  };
}

type Bytes = Uint8Array<ArrayBuffer>;

function header(headers: WebhookHeaders, name: string): string {
  const value =
    headers instanceof Headers
      ? headers.get(name)
      : Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];
  if (typeof value !== 'string' || value === '') throw new WebhookVerificationError(`${name} is missing`);
  return value;
}

function decode(base64: string): Bytes {
  try {
    return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}

function concat(a: Uint8Array, b: Uint8Array): Bytes {
  const joined = new Uint8Array(a.length + b.length);
  joined.set(a);
  joined.set(b, a.length);
  return joined;
}
