/** The message record of the Widget API. Clients ignore unknown fields and tolerate missing ones. */
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

/** The visitor's selection: a MULTIPLE_CHOICE option or a reply button. */
export interface Choice {
  text: string;
  payload: string;
  replyTo: string;
}

export interface Button {
  kind: 'reply' | 'url' | 'phone';
  title: string;
  value: string;
}

export interface Card {
  title: string;
  subtitle: string;
  imageUrl: string;
  buttons: Button[];
}

/** Parses a message record; undefined without an id. An invalid createdAt becomes the current time. */
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

/** The options of a MULTIPLE_CHOICE message. */
export const choicesOf = (d: Data): Button[] =>
  list(d.choices)
    .map((c) => reply(c))
    .filter((b) => b.title !== '');

/** The buttons of an INTERACTIVE message or a carousel card. */
export const buttonsOf = (d: Data): Button[] =>
  list(d.buttons)
    .map(button)
    .filter((b) => b.title !== '');

export const cardsOf = (d: Data): Card[] =>
  list(d.cards).map((c) => ({
    title: text(c.title),
    subtitle: text(c.subtitle),
    imageUrl: text(c.imageUrl),
    buttons: buttonsOf(c),
  }));

function button(b: Data): Button {
  if (b.type === 'url') return { kind: 'url', title: text(b.title) || text(b.url), value: text(b.url) };
  if (b.type === 'phone') return { kind: 'phone', title: text(b.title) || text(b.phone), value: text(b.phone) };
  return reply(b);
}

function reply(b: Data): Button {
  return { kind: 'reply', title: text(b.title) || text(b.payload), value: text(b.payload) || text(b.title) };
}

/** A message as plain text, for live regions, titles and notifications: its text, its sections, or its cards' titles. */
export function summary(m: Message, name: (kind: 'picture' | 'video' | 'audio' | 'file') => string): string {
  const d = m.data;
  const kind = ({ IMAGE: 'picture', VIDEO: 'video', AUDIO: 'audio', FILE: 'file' } as const)[m.type as 'IMAGE'];
  if (kind) return [name(kind), text(d.caption) || text(d.fileName)].filter(Boolean).join(': ');
  const sections = [sectionText(d.header), sectionText(d.body)].filter(Boolean).join('. ');
  const titles = cardsOf(d).map((c) => c.title);
  return text(d.text) || sections || titles.join(', ');
}

/** Whether the text of a message is Markdown. That of visitors never is: agents see what they have typed. */
export const isMarkdown = (m: Message): boolean => m.isFromSupport && m.type === 'TEXT' && m.data.format === 'markdown';

/** The text of an INTERACTIVE section, which is a string or an object with a `text` member. */
export const sectionText = (value: unknown): string => text(value) || text(object(value).text);

/**
 * Compares messages by the order of their chat. Those of one millisecond are equal: a stable sort keeps the order in
 * which the server has sent them.
 */
export const byTime = (a: Message, b: Message): number =>
  a.createdAt < b.createdAt ? -1 : a.createdAt > b.createdAt ? 1 : 0;

/** Whether a precedes b in the order of their chat. */
export const before = (a: Message, b: Message): boolean => byTime(a, b) < 0;
