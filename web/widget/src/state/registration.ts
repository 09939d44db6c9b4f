/** What a registration is made of: the values of the form, the site's identity and the claims of the token. Pure functions of Session. */
import type { Data } from '@parley/shared/message.js';
import type { Identity } from '../host.js';

export const stringList = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((v): v is string => typeof v === 'string' && v !== '') : [];

export function withoutEmpty(fields: Record<string, unknown>): Data {
  return Object.fromEntries(Object.entries(fields).filter(([, v]) => v !== undefined && v !== null && v !== ''));
}

/** A hash of the identity (FNV-1a, 32 bits), to detect a change without storing the identity. */
export function fingerprint(identity: Identity | undefined): string {
  const id = identity?.userId ?? identity?.email ?? identity?.phone ?? '';
  if (!id) return '';
  let h = 0x811c9dc5;
  for (const c of String(id)) h = Math.imul(h ^ c.codePointAt(0)!, 0x01000193) >>> 0;
  return h.toString(36);
}

/** Decodes the claims of a JWT without verifying it. */
export function claimsOf(token: string): Data {
  try {
    return JSON.parse(atob(token.split('.')[1]!.replace(/-/g, '+').replace(/_/g, '/'))) as Data;
  } catch {
    return {};
  }
}
