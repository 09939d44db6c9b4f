/** Reads the visitor's access token, a JWT. Nothing is verified here: the server does that. */
import { text, type Data } from '@parley/shared/message.js';

/** A token is renewed when less than this share of its lifetime is left. */
const RENEWAL_SHARE = 0.2;

function claimsOf(token: string): Data {
  try {
    return JSON.parse(atob(token.split('.')[1]!.replace(/-/g, '+').replace(/_/g, '/'))) as Data;
  } catch {
    return {};
  }
}

/** The id of the visitor; empty for a text that is not a token. */
export const visitorOf = (token: string): string => text(claimsOf(token).sub);

/** Whether the token is close to its expiry. */
export function expiresSoon(token: string): boolean {
  const { iat, exp } = claimsOf(token) as { iat: number; exp: number };
  return exp - Date.now() / 1000 < (exp - iat) * RENEWAL_SHARE;
}
