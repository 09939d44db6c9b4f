import { before, byTime, type Message } from '@parley/shared/message.js';
import type { ChatState, Settings } from '@parley/shared/api.js';
import { applyPart, type Part, type StreamedMessage } from '@parley/shared/parts.js';
import type { OutboxItem } from './outbox.js';

export type Connection = 'idle' | 'connecting' | 'online' | 'reconnecting' | 'offline' | 'unavailable';

export type Phase = 'loading' | 'failed' | 'refused' | 'form' | 'chat';

export interface State {
  phase: Phase;
  settings?: Settings;
  connection: Connection;
  /** Reason for showing the form again. */
  notice?: 'sessionEnded';
  /** The server has rate-limited the visitor (429). */
  slow: boolean;
  /** Messages that the server has accepted, in history order. */
  messages: Message[];
  /** The message that a bot is streaming. */
  streaming?: StreamedMessage | undefined;
  /**
   * Ordinal of the first message. It decreases when older messages are loaded, so that each message keeps its ordinal.
   */
  firstOrdinal: number;
  /** Whether there are earlier messages, in this chat or in chats before it. */
  older: 'unknown' | 'none' | 'more' | 'loading' | 'failed';
  /** Ids of the last messages of earlier chats. */
  ends: string[];
  outbox: OutboxItem[];
  progress: Record<string, number>;
  /** The visitor's read cursor. */
  read: [at: string, id: string];
  unread: number;
  /** The company has read the visitor's messages up to this time. */
  seen: string;
  /** Names of the typing participants on the other side; a name may be empty. */
  typing: string[];
  open: boolean;
  sound: boolean;
  /** The latest chat; undefined until loaded, or if there is none. */
  chat?: ChatState | undefined;
  /** Id of the chat whose rating the visitor has skipped. */
  skipped: string;
  /** `problem` is shown when no field of the form is wrong. */
  form: { busy: boolean; errors: Record<string, string>; problem: '' | 'loadFailed' | 'unavailable' };
}

export type Action =
  | { type: 'settings'; settings: Settings }
  | { type: 'phase'; phase: Phase; notice?: State['notice'] }
  | { type: 'connection'; connection: Connection }
  | { type: 'slow'; slow: boolean }
  | { type: 'messages'; messages: Message[]; more?: boolean }
  | { type: 'end'; message: Message }
  | { type: 'part'; part: Part }
  | { type: 'streamDropped'; messageId: string }
  | { type: 'streamStalled'; messageId: string }
  | { type: 'older'; older: State['older'] }
  | { type: 'outbox'; outbox: OutboxItem[] }
  | { type: 'progress'; key: string; share: number }
  | { type: 'read'; read: State['read'] }
  | { type: 'seen'; upTo: string }
  | { type: 'typing'; names: string[] }
  | { type: 'open'; open: boolean }
  | { type: 'sound'; sound: boolean }
  | { type: 'chat'; chat: ChatState | undefined }
  | { type: 'skipped'; chatId: string }
  | { type: 'form'; form: Partial<State['form']> }
  | { type: 'ended'; notice?: State['notice'] };

/** The state and the one way to change it, as the parts of the session see them. */
export interface Store {
  readonly state: State;
  dispatch(a: Action): void;
}

export const initial: State = {
  phase: 'loading',
  connection: 'idle',
  slow: false,
  messages: [],
  firstOrdinal: 0,
  older: 'unknown',
  ends: [],
  outbox: [],
  progress: {},
  read: ['', ''],
  unread: 0,
  seen: '',
  typing: [],
  open: false,
  sound: true,
  skipped: '',
  form: { busy: false, errors: {}, problem: '' },
};

export function reduce(s: State, a: Action): State {
  switch (a.type) {
    case 'settings':
      return { ...s, settings: a.settings };
    case 'phase':
      return { ...s, phase: a.phase, notice: a.notice, form: initial.form };
    case 'connection':
      return s.connection === a.connection ? s : { ...s, connection: a.connection };
    case 'slow':
      return s.slow === a.slow ? s : { ...s, slow: a.slow };
    case 'messages':
      return withUnreadCount(withoutCompletedStream(merge(s, a.messages, a.more)));
    case 'end': // an earlier chat counts as read
      return reduce(
        { ...s, ends: [...s.ends, a.message.id] },
        { type: 'read', read: [a.message.createdAt, a.message.id] },
      );
    case 'part': {
      const streaming = s.messages.some((m) => m.id === a.part.messageId)
        ? s.streaming
        : applyPart(s.streaming, a.part);
      return streaming === s.streaming ? s : { ...s, streaming };
    }
    case 'streamStalled': // the text stays until the message or another attempt replaces it
      return s.streaming?.messageId === a.messageId ? { ...s, streaming: { ...s.streaming, done: true } } : s;
    case 'streamDropped':
      return s.streaming?.messageId === a.messageId ? { ...s, streaming: undefined } : s;
    case 'older':
      return { ...s, older: a.older };
    case 'outbox': {
      const keys = new Set(a.outbox.map((i) => i.key));
      return {
        ...s,
        outbox: a.outbox,
        progress: Object.fromEntries(Object.entries(s.progress).filter(([k]) => keys.has(k))),
      };
    }
    case 'progress':
      return { ...s, progress: { ...s.progress, [a.key]: a.share } };
    case 'read':
      return withUnreadCount({ ...s, read: laterCursor(s.read, a.read) });
    case 'seen':
      return a.upTo > s.seen ? { ...s, seen: a.upTo } : s;
    case 'typing':
      return { ...s, typing: a.names };
    case 'open':
      return s.open === a.open ? s : { ...s, open: a.open };
    case 'sound':
      return { ...s, sound: a.sound };
    case 'chat':
      return { ...s, chat: a.chat };
    case 'skipped':
      return { ...s, skipped: a.chatId };
    case 'form':
      return { ...s, form: { ...s.form, ...a.form } };
    case 'ended':
      return {
        ...s,
        phase: s.phase === 'chat' ? 'form' : s.phase,
        notice: a.notice,
        connection: 'idle',
        messages: [],
        streaming: undefined,
        firstOrdinal: 0,
        older: 'unknown',
        ends: [],
        outbox: a.notice ? s.outbox : [],
        progress: {},
        read: ['', ''],
        unread: 0,
        chat: undefined,
        skipped: '',
        seen: '',
        typing: [],
      };
  }
}

/** Inserts messages in history order, deduplicated by id. Messages are immutable, so the first copy wins. */
function merge(s: State, incoming: Message[], more: boolean | undefined): State {
  const older = more === undefined ? s.older : more ? 'more' : 'none';
  const known = new Set(s.messages.map((m) => m.id));
  const fresh = incoming.filter((m) => !known.has(m.id) && known.add(m.id)).sort(byTime);
  if (!fresh.length) return older === s.older ? s : { ...s, older };
  const first = s.messages[0];
  const last = s.messages.at(-1);
  if (!last || before(last, fresh[0]!)) return { ...s, older, messages: [...s.messages, ...fresh] };
  const isOlderPage = more !== undefined && !before(first!, fresh.at(-1)!);
  if (isOlderPage || before(fresh.at(-1)!, first!))
    return { ...s, older, messages: [...fresh, ...s.messages], firstOrdinal: s.firstOrdinal - fresh.length };
  const ahead = fresh.filter((m) => before(m, first!)).length;
  return {
    ...s,
    older,
    messages: [...s.messages, ...fresh].sort(byTime),
    firstOrdinal: s.firstOrdinal - ahead,
  };
}

/** Removes the streamed text once its final message is there. */
function withoutCompletedStream(s: State): State {
  return s.streaming && s.messages.some((m) => m.id === s.streaming!.messageId) ? { ...s, streaming: undefined } : s;
}

const laterCursor = (a: State['read'], b: State['read']): State['read'] => (b[0] >= a[0] ? b : a);

/** Recounts the unread messages from the other side. */
function withUnreadCount(s: State): State {
  let unread = 0;
  for (let i = s.messages.length; i-- > 0; ) {
    const m = s.messages[i]!;
    if (m.createdAt < s.read[0] || m.id === s.read[1]) break;
    if (m.isFromSupport) unread++;
  }
  return unread === s.unread ? s : { ...s, unread };
}

/** The newest message from the other side. */
export function newestReply(s: State): Message | undefined {
  for (let i = s.messages.length; i-- > 0; ) if (s.messages[i]!.isFromSupport) return s.messages[i];
  return undefined;
}
