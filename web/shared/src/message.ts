/** The message record of the Widget API, as it comes: a client ignores what it does not know and survives what is missing. */
export type MessageType =
  | 'TEXT' | 'IMAGE' | 'VIDEO' | 'AUDIO' | 'FILE' | 'MULTIPLE_CHOICE' | 'MULTIPLE_CHOICE_REPLY' | 'INTERACTIVE' | 'CAROUSEL' | 'TEMPLATE';

export interface Message {
  id: string;
  createdAt: string;
  type: string;
  data: Data;
  nameOfSender: string;
  isFromSupport: boolean;
  chatId?: string;
  receipt?: boolean;
}

export type Data = Record<string, unknown>;

/** What a visitor chooses: a choice of MULTIPLE_CHOICE, or a reply button. */
export interface Choice { text: string; payload: string; replyTo: string }

export interface Button { kind: 'reply' | 'url' | 'phone'; title: string; value: string }

export interface Card { title: string; subtitle: string; imageUrl: string; buttons: Button[] }

/** Reads a record that came over the wire; undefined where it cannot be shown at all. */
export function readMessage(value: unknown): Message | undefined {
  const m = object(value);
  const id = text(m.id);
  if (!id) return undefined;
  const at = text(m.createdAt);
  return {
    id,
    createdAt: Number.isNaN(Date.parse(at)) ? new Date().toISOString() : at,
    type: text(m.type),
    data: object(m.data),
    nameOfSender: text(m.nameOfSender),
    isFromSupport: m.isFromSupport === true,
    ...(text(m.chatId) && { chatId: text(m.chatId) }),
    ...(m.receipt === true && { receipt: true }),
  };
}

export function text(value: unknown): string {
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : '';
}

export function object(value: unknown): Data {
  return value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as Data) : {};
}

export function list(value: unknown): Data[] {
  return Array.isArray(value) ? value.map(object) : [];
}

/** The choices of MULTIPLE_CHOICE. */
export const choicesOf = (d: Data): Button[] =>
  list(d.choices).map((c) => reply(c)).filter((b) => b.title !== '');

/** The buttons of INTERACTIVE and of a card. */
export const buttonsOf = (d: Data): Button[] =>
  list(d.buttons).map(button).filter((b) => b.title !== '');

export const cardsOf = (d: Data): Card[] =>
  list(d.cards).map((c) => ({ title: text(c.title), subtitle: text(c.subtitle), imageUrl: text(c.imageUrl), buttons: buttonsOf(c) }));

function button(b: Data): Button {
  if (b.type === 'url') return { kind: 'url', title: text(b.title) || text(b.url), value: text(b.url) };
  if (b.type === 'phone') return { kind: 'phone', title: text(b.title) || text(b.phone), value: text(b.phone) };
  return reply(b);
}

function reply(b: Data): Button {
  return { kind: 'reply', title: text(b.title) || text(b.payload), value: text(b.payload) || text(b.title) };
}

/** A message in plain words: for the announcer, the page's title and notifications. */
export function summary(m: Message, name: (kind: 'picture' | 'video' | 'audio' | 'file') => string): string {
  const d = m.data;
  const kind = ({ IMAGE: 'picture', VIDEO: 'video', AUDIO: 'audio', FILE: 'file' } as const)[m.type as 'IMAGE'];
  if (kind) return [name(kind), text(d.caption) || text(d.fileName)].filter(Boolean).join(': ');
  if (m.type === 'CAROUSEL') return cardsOf(d).map((c) => c.title).join(', ');
  if (m.type === 'INTERACTIVE') return [part(d.header), part(d.body)].filter(Boolean).join('. ');
  return text(d.text);
}

/** A part of an interactive message: a text, or an object with one. */
export const part = (value: unknown): string => text(value) || text(object(value).text);

/** Messages in the order of the history: by time, then by id. */
export function before(a: Message, b: Message): boolean {
  return a.createdAt < b.createdAt || (a.createdAt === b.createdAt && a.id < b.id);
}
