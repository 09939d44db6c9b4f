import { chats } from './api/api.js';
import { live } from './api/live.js';
import { Store } from './lib/store.js';

/** The number of open chats with unread messages, counted up to 100. */
export const unread = new Store<{ count: number; more: boolean }>({ count: 0, more: false });

let timer: ReturnType<typeof setTimeout> | undefined;

export function refreshUnread(): void {
  clearTimeout(timer);
  timer = setTimeout(() => void chats.unread().then((n) => unread.set(n), () => {}), 200);
}

/** Reloads the count after each live event that may change it. */
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
