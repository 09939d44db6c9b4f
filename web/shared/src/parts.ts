/** Messages that a bot is still streaming, received as `message.part` socket events. */
import { object, text } from './message.js';

export interface Part {
  messageId: string;
  /** Sequence number; increases with each part of the message. */
  n: number;
  /** Start of the text in the message, in UTF-16 code units. 0 means that the text is the whole message so far. */
  offset: number;
  text: string;
  createdAt: string;
  /** Set only if offset is 0. */
  nameOfSender: string;
  /** How to show the text: `markdown`, or as it is. Set only if offset is 0. */
  format: string;
  /** No further parts follow. */
  done: boolean;
}

/** The accumulated state of a streamed message. */
export interface StreamedMessage {
  messageId: string;
  n: number;
  text: string;
  createdAt: string;
  nameOfSender: string;
  format: string;
  done: boolean;
}

export function readPart(value: unknown): Part | undefined {
  const p = object(value);
  const messageId = text(p.messageId);
  const n = Number(p.n);
  const offset = Number(p.offset);
  if (!messageId || !(n >= 0) || !(offset >= 0)) return undefined;
  return {
    messageId,
    n,
    offset,
    text: text(p.text),
    createdAt: text(p.createdAt),
    nameOfSender: text(p.nameOfSender),
    format: text(p.format),
    done: p.done === true,
  };
}

/** Applies a part. Returns the same object if the part changes nothing: a duplicate, an old part, or a part after a gap. */
export function applyPart(w: StreamedMessage | undefined, p: Part): StreamedMessage | undefined {
  const same = w?.messageId === p.messageId;
  if (same && p.n <= w!.n) return w;
  if (p.done) return same ? { ...w!, n: p.n, done: true } : w;
  if (p.offset === 0)
    return {
      messageId: p.messageId,
      n: p.n,
      text: p.text,
      createdAt: p.createdAt,
      nameOfSender: p.nameOfSender,
      format: p.format,
      done: false,
    };
  if (!same || w!.done || p.n !== w!.n + 1 || p.offset !== w!.text.length) return w;
  return { ...w!, n: p.n, text: w!.text + p.text };
}
