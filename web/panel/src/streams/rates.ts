import type { Streams } from '../api/types.js';

/** Events per second between two responses: published per stream, delivered per consumer. */
export interface Rates {
  streams: Record<string, number>;
  consumers: Record<string, number>;
}

export function ratesOf(before: Streams | undefined, now: Streams): Rates {
  const rates: Rates = { streams: {}, consumers: {} };
  const seconds = before ? (Date.parse(now.at) - Date.parse(before.at)) / 1000 : 0;
  if (seconds <= 0) return rates;
  for (const s of now.streams) {
    const old = before!.streams.find((o) => o.name === s.name);
    if (!old) continue;
    rates.streams[s.name] = Math.max(0, s.lastSequence - old.lastSequence) / seconds;
    for (const c of s.consumers) {
      const was = old.consumers.find((o) => o.name === c.name);
      if (was)
        rates.consumers[`${s.name} ${c.name}`] = Math.max(0, c.deliveredSequence - was.deliveredSequence) / seconds;
    }
  }
  return rates;
}

/** The health of a consumer: lagging when its oldest event is older than 30 seconds, inactive when no process reads from it. */
export type Health = 'good' | 'lagging' | 'inactive';

export function healthOf(c: { read: boolean; pending: number; ackPending: number; oldestAgeSeconds: number }): Health {
  if (!c.read) return 'inactive';
  return c.oldestAgeSeconds > 30 && c.pending + c.ackPending > 0 ? 'lagging' : 'good';
}
