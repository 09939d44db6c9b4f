/**
 * The documents of a company as a form, the files that fill it, and what the panel says about passages.
 * documents.tsx, editor.tsx and question.tsx render it; the log of calls links to the form of an answer.
 */
import type { CreateDocument, DocumentFetch, DocumentFormat, DocumentWithText } from '../api/types.js';
import { formatAgo, formatBytes, formatShort } from '../lib/format.js';
import { strings } from '../strings.js';

const s = strings.documents;

/** The API's maximum of a text, in bytes. */
export const MAX_TEXT = 512 * 1024;

/** The API's maximum of a title, in characters. */
const MAX_TITLE = 200;

export const FORMATS: DocumentFormat[] = ['markdown', 'html', 'text'];

/** The format of a file by the end of its name. */
const ENDINGS: Record<string, DocumentFormat> = {
  md: 'markdown',
  markdown: 'markdown',
  html: 'html',
  htm: 'html',
  txt: 'text',
};

/** The files that the browser offers. */
export const ACCEPTED = [...Object.keys(ENDINGS), 'pdf'].map((ending) => `.${ending}`).join(',');

/** A document as the fields of the form have it. */
export interface DocumentForm {
  title: string;
  address: string;
  format: DocumentFormat;
  text: string;
  /** Hours between two fetches of the text from the address; 0: it is given by hand. */
  refreshHours: number;
}

/** The hours that the form offers. */
export const REFRESHES = [1, 6, 24, 168, 720];

/** The hours of a document that is fetched for the first time. */
export const REFRESH = 24;

export const formOf = ({ title, address = '', format, text = '', refreshHours }: DocumentWithText): DocumentForm => ({
  title,
  address,
  format,
  text,
  refreshHours,
});

/** Whether no fetch has ended yet: the first one is due, or in progress. */
export const isFirst = ({ fetchedAt, failure }: DocumentFetch): boolean => !fetchedAt && !failure;

/** What a user reads about the fetches of a document. */
export function fetchText({ nextAt, fetchedAt, failure }: DocumentFetch, now = Date.now()): string[] {
  const isDue = isFirst({ nextAt, fetchedAt, failure }) || new Date(nextAt).getTime() <= now;
  return [
    ...(failure ? [s.fetchFailed(failure.message, formatAgo(failure.at, now))] : []),
    ...(fetchedAt ? [s.fetchedAt(formatAgo(fetchedAt, now))] : []),
    isDue ? s.fetchSoon : s.fetchNext(formatShort(nextAt, now)),
  ];
}

/** Returns the body that creates or changes a document. */
export function contentOf(f: DocumentForm): CreateDocument {
  const address = f.address.trim();
  const title = f.title.trim();
  if (f.refreshHours) return { ...(title && { title }), address, refreshHours: f.refreshHours };
  return { title, ...(address && { address }), format: f.format, text: f.text };
}

export const sameForm = (a: DocumentForm, b: DocumentForm): boolean =>
  a.title === b.title &&
  a.address === b.address &&
  a.format === b.format &&
  a.text === b.text &&
  a.refreshHours === b.refreshHours;

/** Returns the form of a new document: empty, or the beginning of an answer to a visitor's question. */
export function newForm(question = ''): DocumentForm {
  const line = lineOf(question);
  return { title: cut(line), address: '', format: 'markdown', text: line && `## ${line}\n\n`, refreshHours: 0 };
}

/** Returns the address of the form that answers a visitor's question. */
export const answerHref = (question: string): string =>
  `#/documents/new?${new URLSearchParams({ question: lineOf(question) })}`;

/** A text as one line, as titles and headings are. */
const lineOf = (text: string): string => text.replace(/[\s\p{Cc}]+/gu, ' ').trim();

/** Cuts a title to the API's maximum. */
const cut = (title: string): string => Array.from(title).slice(0, MAX_TITLE).join('').trim();

/** What a file is in the form, or why it cannot be read. */
export type FileContent = { format: DocumentFormat; title: string; text: string } | { problem: string };

/** The API's maximum of a PDF file, in bytes. */
export const MAX_PDF = 10 * 1024 * 1024;

/** Whether a file is to be read by the API. */
export const isPDF = (name: string): boolean => /\.pdf$/i.test(name);

/** Returns the title of a document from the name of its file. */
export const titleOfFile = (name: string): string => cut(lineOf(name.replace(/\.[^.]*$/, '')));

/** Reads a file whose name says its format. */
export function contentOfFile(name: string, bytes: Uint8Array): FileContent {
  const [, ending = ''] = /\.([^.]+)$/.exec(name) ?? [];
  const format = ENDINGS[ending.toLowerCase()];
  if (!format) return { problem: s.fileFormat };
  if (bytes.length > MAX_TEXT) return { problem: s.fileLarge(formatBytes(MAX_TEXT)) };
  const text = decoded(bytes);
  if (text === undefined) return { problem: s.fileEncoding };
  return { format, title: titleOfFile(name), text };
}

/** Decodes UTF-8 without its byte order mark. Returns undefined for other bytes. */
function decoded(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** Returns where a passage stands: its document and the headings above it. */
export const placeOf = ({ title, heading }: { title: string; heading: string }): string =>
  [title, heading].filter(Boolean).join(' › ');
