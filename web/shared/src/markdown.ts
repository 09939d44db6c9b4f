/**
 * Markdown as language models write it, parsed into nodes: emphasis, links, code, lists, quotes, and headings as bold
 * text. HTML and all else is text. render/markdown.tsx makes elements of the nodes; previews read plainText.
 *
 * Parsing never fails, and takes time in proportion to the length: nesting is bounded, and no expression that fails
 * is tried again on the same characters.
 */
import { isMarkdown, text, type Message } from './message.js';
import { safeLink } from './url.js';

export type Tag = 'p' | 'pre' | 'ul' | 'ol' | 'li' | 'blockquote' | 'hr' | 'strong' | 'em' | 's' | 'code' | 'a';

export interface Node {
  tag: Tag;
  children: Child[];
  /** Of a link: an http or https URL. */
  href?: string;
  /** The first number of an ordered list. */
  start?: number;
}

export type Child = Node | string;

/** Nested lists and quotes; what is deeper is text. */
const MAX_DEPTH = 8;
/** Marks of a paragraph that are open at once; what follows is text. */
const MAX_OPEN = 16;

const FENCE = /^\s*(`{3,}|~{3,})[^`]*$/;
const HEADING = /^ {0,3}#{1,6}(?=\s)/;
const RULE = /^\s*([-*_])(?:\s*\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^([ \t]*)(?:[-*+]|(\d{1,9})[.)])[ \t]+(?=\S)/;
const INDENT = /^[ \t]*/;

/** Characters that are no text yet at the end of an unfinished text. */
const MARKS = '*_`~#>[+- \n';

/**
 * Returns the blocks of a text. More of an `unfinished` text follows: what is open is shown as if it ended here, and
 * marks at the end are left out, since it is not known yet what they open.
 */
export function parse(source: string, unfinished = false): Node[] {
  let end = source.length;
  while (unfinished && end && MARKS.includes(source[end - 1]!)) end--;
  return blocks(source.slice(0, end).split(/\r?\n/), 0, unfinished);
}

/** The text of a message as a person reads it, without marks. */
export const plainText = (source: string): string => parse(source).map(textOf).join('\n');

/** A message whose text has no marks, for what shows one line of it. */
export function withoutMarks<M extends Message>(m: M): M {
  return isMarkdown(m) ? { ...m, data: { ...m.data, text: plainText(text(m.data.text)) } } : m;
}

function textOf(child: Child): string {
  if (typeof child === 'string') return child;
  const separator = /^(?:[uo]l|li|blockquote)$/.test(child.tag) ? '\n' : '';
  return child.children.map(textOf).join(separator);
}

function blocks(lines: string[], depth: number, unfinished: boolean): Node[] {
  const found: Node[] = [];
  let paragraph: string[] = [];
  const endParagraph = (open: boolean) => {
    if (paragraph.length) found.push({ tag: 'p', children: inlines(paragraph.join('\n'), open) });
    paragraph = [];
  };
  for (let i = 0; i < lines.length; ) {
    const block = blockAt(lines, i, depth, unfinished, paragraph.length > 0);
    if (block) {
      endParagraph(false);
      found.push(block.node);
      i = block.next;
      continue;
    }
    const line = lines[i++]!.trim();
    if (line) paragraph.push(line);
    else endParagraph(false);
  }
  endParagraph(unfinished);
  return found;
}

/** A block, and the index of the line that follows it. */
interface Found {
  node: Node;
  next: number;
}

/** Returns the block that begins at a line; undefined if the line is empty or belongs to a paragraph. */
function blockAt(
  lines: string[],
  at: number,
  depth: number,
  unfinished: boolean,
  afterText: boolean,
): Found | undefined {
  const line = lines[at]!;
  const fence = FENCE.exec(line);
  if (fence) return fenced(lines, at, fence[1]!);
  if (isRow(line)) return table(lines, at);
  const heading = HEADING.exec(line);
  if (heading) {
    const words = line.slice(heading[0].length).trim();
    const children = inlines(words, unfinished && at === lines.length - 1);
    return { node: { tag: 'p', children: [{ tag: 'strong', children }] }, next: at + 1 };
  }
  if (RULE.test(line)) return { node: { tag: 'hr', children: [] }, next: at + 1 };
  if (depth === MAX_DEPTH) return undefined;
  if (QUOTE.test(line)) return quote(lines, at, depth, unfinished);
  const item = ITEM.exec(line);
  const isSentence = afterText && item?.[2] && item[2] !== '1'; // a line of text may begin with "2025. "
  return item && !isSentence ? list(lines, at, depth, unfinished) : undefined;
}

/** Code up to the fence that closes it, or to the end. */
function fenced(lines: string[], at: number, fence: string): Found {
  let next = at + 1;
  while (next < lines.length && !closes(lines[next]!.trim(), fence)) next++;
  const code = lines.slice(at + 1, next).join('\n');
  return { node: { tag: 'pre', children: [code] }, next: next + 1 };
}

const closes = (line: string, fence: string): boolean => line.startsWith(fence) && !line.replaceAll(fence[0]!, '');

const isRow = (line: string): boolean => line.trim()[0] === '|';

/** Rows of a table: shown as they are, in a font in which columns are aligned. */
function table(lines: string[], at: number): Found {
  let next = at;
  while (next < lines.length && isRow(lines[next]!)) next++;
  return { node: { tag: 'pre', children: [lines.slice(at, next).join('\n')] }, next };
}

function quote(lines: string[], at: number, depth: number, unfinished: boolean): Found {
  let next = at;
  while (next < lines.length && QUOTE.test(lines[next]!)) next++;
  const inside = lines.slice(at, next).map((line) => line.replace(QUOTE, ''));
  const children = blocks(inside, depth + 1, unfinished && next === lines.length);
  return { node: { tag: 'blockquote', children }, next };
}

/** The items from a line on that are of one kind, with what is indented below each. */
function list(lines: string[], at: number, depth: number, unfinished: boolean): Found {
  const first = ITEM.exec(lines[at]!)!;
  const isOrdered = !!first[2];
  const indent = first[1]!.length;
  const children: Node[] = [];
  let next = at;
  for (;;) {
    const item = next < lines.length ? ITEM.exec(lines[next]!) : null;
    if (!item || !!item[2] !== isOrdered || item[1]!.length < indent) break;
    const inside = [lines[next]!.slice(item[0].length)];
    next = addIndented(lines, next + 1, indent + 2, item[0].length, inside);
    children.push({ tag: 'li', children: blocks(inside, depth + 1, unfinished && next === lines.length) });
    const following = nextText(lines, next); // items may be separated by empty lines
    if (following < lines.length && ITEM.test(lines[following]!)) next = following;
  }
  const node: Node = isOrdered ? { tag: 'ol', children, start: Number(first[2]) } : { tag: 'ul', children };
  return { node, next };
}

/**
 * Adds the lines from `at` on that are indented by `least`, without up to `most` of it. Returns the index of the line
 * after them.
 */
function addIndented(lines: string[], at: number, least: number, most: number, to: string[]): number {
  for (;;) {
    const following = nextText(lines, at);
    const line = lines[following];
    const indent = line ? INDENT.exec(line)![0].length : 0;
    if (line === undefined || indent < least) return at;
    for (; at < following; at++) to.push('');
    to.push(line.slice(Math.min(indent, most)));
    at++;
  }
}

/** The index of the first line from `at` on that is not empty. */
function nextText(lines: string[], at: number): number {
  while (at < lines.length && !lines[at]!.trim()) at++;
  return at;
}

const TOKEN = /\\[!-/:-@[-`{-~]|`+|\*+|_+|~~|!?\[|\]|https?:\/\/[^\s<>*`\]]+/g;
const ADDRESS = /\(\s*<?([^\s()<>]*(?:\([^\s()<>]*\)[^\s()<>]*)*)>?(?:\s+"[^"\n]*")?\s*\)/y;
const OPEN_ADDRESS = /\([^\s()]*$/y;
const WORD = /[\p{L}\p{N}]/u;

/** A mark that is not closed yet, and what follows it. */
interface Open {
  mark: string;
  children: Child[];
  /** A bracket that cannot become a link, since there is a link inside it. */
  isText?: boolean;
}

const inlines = (source: string, unfinished: boolean): Child[] => new InlineParser(source, unfinished).parse();

/** Parses the text of one paragraph. */
class InlineParser {
  readonly #source: string;
  readonly #unfinished: boolean;
  readonly #root: Child[] = [];
  readonly #open: Open[] = [];
  /** The start of the last run of backticks of each length: without it, each run would look for its end in vain. */
  readonly #lastTicks = new Map<number, number>();
  #at = 0;

  constructor(source: string, unfinished: boolean) {
    this.#source = source;
    this.#unfinished = unfinished;
    for (const ticks of source.matchAll(/`+/g)) this.#lastTicks.set(ticks[0].length, ticks.index);
  }

  parse(): Child[] {
    const source = this.#source;
    for (;;) {
      TOKEN.lastIndex = this.#at;
      const token = TOKEN.exec(source);
      this.#addText(source.slice(this.#at, token ? token.index : source.length));
      if (!token) break;
      this.#at = TOKEN.lastIndex;
      this.#take(token[0], token.index);
    }
    if (this.#unfinished) while (this.#open.length) this.#closeLast();
    this.#makeText(0);
    return this.#root;
  }

  #take(token: string, at: number): void {
    switch (token[0]) {
      case '\\':
        return this.#addText(token[1]!);
      case '`':
        return this.#code(token, at);
      case '*':
      case '_':
      case '~':
        return this.#emphasis(token, at);
      case '!':
      case '[':
        return this.#begin(token);
      case ']':
        return this.#link();
    }
    this.#addText(token);
  }

  get #children(): Child[] {
    return this.#open.at(-1)?.children ?? this.#root;
  }

  #addText(added: string): void {
    const children = this.#children;
    const last = children.at(-1);
    if (typeof last === 'string') children[children.length - 1] = last + added;
    else if (added) children.push(added);
  }

  #add(child: Child): void {
    if (typeof child === 'string') this.#addText(child);
    else this.#children.push(child);
  }

  #begin(mark: string): void {
    if (this.#open.length < MAX_OPEN) this.#open.push({ mark, children: [] });
    else this.#addText(mark);
  }

  /** The open marks from an index on are text. */
  #makeText(from: number): void {
    for (const { mark, children } of this.#open.splice(from)) {
      this.#addText(mark);
      for (const child of children) this.#add(child);
    }
  }

  /** Closes the last open mark where the text ends. An open bracket has no address yet. */
  #closeLast(): void {
    const { mark, children } = this.#open.pop()!;
    if (mark.endsWith('[')) for (const child of children) this.#add(child);
    else if (children.length) this.#children.push({ tag: tagOf(mark), children });
  }

  /** Code up to the next run of as many backticks. */
  #code(ticks: string, at: number): void {
    const source = this.#source;
    const from = this.#at;
    const isClosed = this.#lastTicks.get(ticks.length)! > at;
    if (!isClosed && !this.#unfinished) return this.#addText(ticks);
    const end = isClosed ? this.#findTicks(ticks.length) : source.length;
    const code = source.slice(from, end);
    this.#children.push({ tag: 'code', children: [code.trim() || code] });
    this.#at = end + ticks.length;
  }

  /** Returns the index of the next run of so many backticks, which exists. */
  #findTicks(length: number): number {
    const ticks = /`+/g;
    ticks.lastIndex = this.#at;
    let run = ticks.exec(this.#source)!;
    while (run[0].length !== length) run = ticks.exec(this.#source)!;
    return run.index;
  }

  /** Emphasis where a mark touches what it encloses; a single one and an underscore only around whole words. */
  #emphasis(run: string, at: number): void {
    const before = this.#source[at - 1] ?? ' ';
    const after = this.#source[this.#at] ?? ' ';
    let left = run.length > 3 ? '' : run;
    if (!left) this.#addText(run);
    while (left) {
      const closed = before.trim() ? this.#closable(left, after) : -1;
      if (closed >= 0) {
        this.#makeText(closed + 1);
        left = left.slice(this.#open[closed]!.mark.length);
        this.#closeLast();
        continue;
      }
      const mark = left.slice(0, 2);
      const opens = after.trim() && !(isNarrow(mark) && WORD.test(before));
      if (opens) this.#begin(mark);
      else this.#addText(mark);
      left = left.slice(mark.length);
    }
  }

  /** The index of the open mark that a run of marks closes, or -1. */
  #closable(run: string, after: string): number {
    const inWord = WORD.test(after);
    return this.#open.findLastIndex(
      ({ mark, children }) => run.startsWith(mark) && children.length && !(inWord && isNarrow(mark)),
    );
  }

  /** A bracket is closed: a link if a safe address follows, else text. */
  #link(): void {
    const bracket = this.#open.findLastIndex(({ mark, isText }) => mark.endsWith('[') && !isText);
    if (bracket < 0) return this.#addText(']');
    ADDRESS.lastIndex = this.#at;
    const href = safeLink(ADDRESS.exec(this.#source)?.[1] ?? '');
    OPEN_ADDRESS.lastIndex = this.#at;
    if (href) {
      this.#makeText(bracket + 1);
      const { children } = this.#open.pop()!;
      for (const outer of this.#open) outer.isText = true;
      this.#children.push({ tag: 'a', href, children: children.length ? children : [href] });
      this.#at = ADDRESS.lastIndex;
    } else if (this.#unfinished && OPEN_ADDRESS.test(this.#source)) {
      this.#makeText(bracket + 1);
      this.#closeLast();
      this.#at = this.#source.length;
    } else {
      this.#makeText(bracket);
      this.#addText(']');
    }
  }
}

const isNarrow = (mark: string): boolean => mark[0] === '_' || mark.length === 1;

const tagOf = (mark: string): Tag => (mark === '~~' ? 's' : mark.length > 1 ? 'strong' : 'em');
