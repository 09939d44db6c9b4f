import { chats } from './api/api.js';
import { live } from './api/live.js';
import type { Counts } from './api/types.js';
import { Store } from './lib/store.js';

const none: Counts = { waiting: 0, unread: 0, mine: 0, attention: 0 };

/** The numbers of open chats that wait for people. The bot's chats are not counted. */
export const counts = new Store<Counts>(none);

/** Formats a count, which the server stops at 100. */
export const formatCount = (n: number): string => (n >= 100 ? '99+' : String(n));

let timer: ReturnType<typeof setTimeout> | undefined;

export function refreshCounts(): void {
  clearTimeout(timer);
  timer = setTimeout(
    () =>
      void chats.counts().then(
        (n) => counts.set(n),
        () => {},
      ),
    200,
  );
}

/** Reloads the counts after each live event that may change them. */
export function startCounts(): () => void {
  const stops = [
    live.on('message', (e) => !e.message.isFromSupport && refreshCounts()),
    live.on('read', refreshCounts),
    live.on('chat', refreshCounts),
    live.on('reset', refreshCounts),
  ];
  return () => {
    clearTimeout(timer);
    stops.forEach((stop) => stop());
    counts.set(none);
  };
}
