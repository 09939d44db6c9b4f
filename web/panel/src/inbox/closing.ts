/**
 * Chats that an agent has closed a moment ago. The API has no reopening, so that the request waits while the agent may undo. It is
 * sent at once when the page is left.
 */

/** How long a close can be undone, in milliseconds. */
export const UNDO = 6_000;

interface Closing {
  timer: ReturnType<typeof setTimeout>;
  send(): void;
  undo(): void;
}

const closing = new Map<string, Closing>();

/** Closes a chat later. undo runs if the close is undone. */
export function closeLater(chatId: string, send: () => void, undo: () => void): void {
  closing.set(chatId, { send, undo, timer: setTimeout(() => finish(chatId), UNDO) });
}

/** Undoes a close that has not been sent. Returns whether there was one. */
export function undoClose(chatId: string): boolean {
  const c = closing.get(chatId);
  if (!c) return false;
  clearTimeout(c.timer);
  closing.delete(chatId);
  c.undo();
  return true;
}

function finish(chatId: string): void {
  const c = closing.get(chatId);
  if (!c) return;
  clearTimeout(c.timer);
  closing.delete(chatId);
  c.send();
}

/** Sends all closes at once. */
export function finishAll(): void {
  for (const id of [...closing.keys()]) finish(id);
}

globalThis.addEventListener?.('pagehide', finishAll);
