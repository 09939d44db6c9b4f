/** Messages that a bot is still writing, as the socket event `message.part` brings them. */
import { object, text } from './message.js';

export interface Part {
  messageId: string;
  /** Rises with each part of the message. */
  n: number;
  /** Where the text begins, in UTF-16 code units. 0: the text is all of the message so far. */
  offset: number;
  text: string;
  createdAt: string;
  /** Only with offset 0. */
  nameOfSender: string;
  /** No more parts come. */
  done: boolean;
}

/** What is known of a message that is being written. */
export interface Writing { messageId: string; n: number; text: string; createdAt: string; nameOfSender: string; done: boolean }

export function readPart(value: unknown): Part | undefined {
  const p = object(value);
  const messageId = text(p.messageId);
  const n = Number(p.n);
  const offset = Number(p.offset);
  if (!messageId || !(n >= 0) || !(offset >= 0)) return undefined;
  return { messageId, n, offset, text: text(p.text), createdAt: text(p.createdAt), nameOfSender: text(p.nameOfSender), done: p.done === true };
}

/** The message after a part. It is the same object where the part changes nothing: an old one, or one before which something is missing. */
export function extend(w: Writing | undefined, p: Part): Writing | undefined {
  const same = w?.messageId === p.messageId;
  if (same && p.n <= w!.n) return w;
  if (p.done) return same ? { ...w!, n: p.n, done: true } : w;
  if (p.offset === 0) return { messageId: p.messageId, n: p.n, text: p.text, createdAt: p.createdAt, nameOfSender: p.nameOfSender, done: false };
  if (!same || w!.done || p.n !== w!.n + 1 || p.offset !== w!.text.length) return w;
  return { ...w!, n: p.n, text: w!.text + p.text };
}
