import { before, type Message } from '@parley/shared/message.js';
import type { ChatState, Settings } from '@parley/shared/api.js';
import { extend, type Part, type Writing } from '@parley/shared/parts.js';
import type { OutboxItem } from './outbox.js';

export type Connection = 'idle' | 'connecting' | 'online' | 'reconnecting' | 'offline' | 'unavailable';

export type Phase = 'loading' | 'failed' | 'refused' | 'form' | 'chat';

export interface State {
  phase: Phase;
  settings?: Settings;
  connection: Connection;
  /** Why the visitor sees the form again. */
  notice?: 'sessionEnded';
  /** The server asks to write less. */
  slow: boolean;
  /** What the server has, in its order. */
  messages: Message[];
  /** The message that a bot is writing. */
  writing?: Writing | undefined;
  /** The ordinal of the first message: it falls as older ones are found, so that every message keeps its own. */
  base: number;
  older: 'unknown' | 'none' | 'more' | 'loading' | 'failed';
  outbox: OutboxItem[];
  progress: Record<string, number>;
  /** Up to where the visitor has read. */
  read: [at: string, id: string];
  unread: number;
  /** Up to when the company has read what the visitor wrote. */
  seen: string;
  /** Who of the other side types. */
  typing: string[];
  /** Somebody of the company is there to answer. */
  agents: boolean;
  open: boolean;
  sound: boolean;
  /** The latest chat; undefined until the server has said it. */
  chat?: ChatState | undefined;
  /** The chat that the visitor does not want to rate. */
  skipped: string;
  form: { busy: boolean; errors: Record<string, string>; problem: string };
}

export type Action =
  | { type: 'settings'; settings: Settings }
  | { type: 'phase'; phase: Phase; notice?: State['notice'] }
  | { type: 'connection'; connection: Connection }
  | { type: 'slow'; slow: boolean }
  | { type: 'messages'; messages: Message[]; more?: boolean }
  | { type: 'part'; part: Part }
  | { type: 'dropped'; messageId: string }
  | { type: 'silent'; messageId: string }
  | { type: 'older'; older: State['older'] }
  | { type: 'outbox'; outbox: OutboxItem[] }
  | { type: 'progress'; key: string; share: number }
  | { type: 'read'; read: State['read'] }
  | { type: 'seen'; upTo: string }
  | { type: 'typing'; names: string[] }
  | { type: 'agents'; agents: boolean }
  | { type: 'open'; open: boolean }
  | { type: 'sound'; sound: boolean }
  | { type: 'chat'; chat: ChatState | undefined }
  | { type: 'skipped'; chatId: string }
  | { type: 'form'; form: Partial<State['form']> }
  | { type: 'ended'; notice?: State['notice'] };

export const initial: State = {
  phase: 'loading', connection: 'idle', slow: false, messages: [], base: 0, older: 'unknown', outbox: [], progress: {}, read: ['', ''], unread: 0,
  seen: '', typing: [], agents: false, open: false, sound: true, skipped: '', form: { busy: false, errors: {}, problem: '' },
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
      return counted(replaced(merge(s, a.messages, a.more)));
    case 'part': {
      const writing = s.messages.some((m) => m.id === a.part.messageId) ? s.writing : extend(s.writing, a.part);
      return writing === s.writing ? s : { ...s, writing };
    }
    case 'silent': // its text stays, until the message or another attempt replaces it
      return s.writing?.messageId === a.messageId ? { ...s, writing: { ...s.writing, done: true } } : s;
    case 'dropped':
      return s.writing?.messageId === a.messageId ? { ...s, writing: undefined } : s;
    case 'older':
      return { ...s, older: a.older };
    case 'outbox': {
      const keys = new Set(a.outbox.map((i) => i.key));
      return { ...s, outbox: a.outbox, progress: Object.fromEntries(Object.entries(s.progress).filter(([k]) => keys.has(k))) };
    }
    case 'progress':
      return { ...s, progress: { ...s.progress, [a.key]: a.share } };
    case 'read':
      return counted({ ...s, read: later(s.read, a.read) });
    case 'seen':
      return a.upTo > s.seen ? { ...s, seen: a.upTo } : s;
    case 'typing':
      return { ...s, typing: a.names };
    case 'agents':
      return s.agents === a.agents ? s : { ...s, agents: a.agents };
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
        ...s, phase: s.phase === 'chat' ? 'form' : s.phase, notice: a.notice, connection: 'idle', messages: [], writing: undefined, base: 0, older: 'unknown',
        outbox: a.notice ? s.outbox : [], progress: {}, read: ['', ''], unread: 0, chat: undefined, skipped: '', seen: '', typing: [], agents: false,
      };
  }
}

/** Puts messages in their places; each id once. The first version of a message stays: messages do not change. */
function merge(s: State, incoming: Message[], more: boolean | undefined): State {
  const older = more === undefined ? s.older : more ? 'more' : 'none';
  const known = new Set(s.messages.map((m) => m.id));
  const fresh = incoming.filter((m) => !known.has(m.id) && known.add(m.id)).sort((a, b) => (before(a, b) ? -1 : 1));
  if (!fresh.length) return older === s.older ? s : { ...s, older };
  const first = s.messages[0];
  const last = s.messages.at(-1);
  if (!last || before(last, fresh[0]!)) return { ...s, older, messages: [...s.messages, ...fresh] };
  if (before(fresh.at(-1)!, first!)) return { ...s, older, messages: [...fresh, ...s.messages], base: s.base - fresh.length };
  const ahead = fresh.filter((m) => before(m, first!)).length;
  return { ...s, older, messages: [...s.messages, ...fresh].sort((a, b) => (before(a, b) ? -1 : 1)), base: s.base - ahead };
}

/** A message takes the place of what was shown of it. */
function replaced(s: State): State {
  return s.writing && s.messages.some((m) => m.id === s.writing!.messageId) ? { ...s, writing: undefined } : s;
}

const later = (a: State['read'], b: State['read']): State['read'] => (b[0] > a[0] || (b[0] === a[0] && b[1] > a[1]) ? b : a);

/** Counts the messages of the other side that the visitor has not read. */
function counted(s: State): State {
  let unread = 0;
  for (let i = s.messages.length; i-- > 0; ) {
    const m = s.messages[i]!;
    if (m.createdAt < s.read[0] || (m.createdAt === s.read[0] && m.id <= s.read[1])) break;
    if (m.isFromSupport) unread++;
  }
  return unread === s.unread ? s : { ...s, unread };
}

/** The newest message of the other side. */
export function newestReply(s: State): Message | undefined {
  for (let i = s.messages.length; i-- > 0; ) if (s.messages[i]!.isFromSupport) return s.messages[i];
  return undefined;
}
