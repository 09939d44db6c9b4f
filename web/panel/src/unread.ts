import { chats } from './api/api.js';
import { live } from './api/live.js';
import { Store } from './lib/store.js';

/** How many open chats have something unread; at most 100 are counted. */
export const unread = new Store<{ count: number; more: boolean }>({ count: 0, more: false });

let timer: ReturnType<typeof setTimeout> | undefined;

export function refreshUnread(): void {
  clearTimeout(timer);
  timer = setTimeout(() => void chats.unread().then((n) => unread.set(n), () => {}), 200);
}

/** Counts again when something has happened that may change the count. */
export function startUnread(): () => void {
  const stops = [
    live.on('message', (e) => !e.message.isFromSupport && refreshUnread()),
    live.on('read', refreshUnread),
    live.on('chat', refreshUnread),
    live.on('reset', refreshUnread),
  ];
  return () => {
    clearTimeout(timer);
    stops.forEach((stop) => stop());
    unread.set({ count: 0, more: false });
  };
}
