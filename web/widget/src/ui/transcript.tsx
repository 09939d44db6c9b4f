import { Component, createRef } from 'preact';
import type { Message } from '@parley/shared/message.js';
import type { Writing } from '@parley/shared/parts.js';
import { Content, nameOf, Words, type Render } from '@parley/shared/render/content.js';
import { Icon } from '@parley/shared/render/icon.js';
import { Pixels } from '@parley/shared/render/picture.js';
import { midnight, type Language } from '../i18n.js';
import type { OutboxItem } from '../state/outbox.js';
import type { Session } from '../state/session.js';
import type { State } from '../state/reducer.js';
import { Avatar } from './avatar.js';
import type { Sheet } from './sheet.js';
import { noticeText } from './support.js';

/** Messages of a page, the unit that is on the screen or not. */
const SIZE = 20;
/** What a message is taken for until it has been measured. */
const GUESS = 76;
/** How far above and below the window pages are drawn. */
const MARGIN = 900;
const GROUP = 5 * 60_000;

export interface TranscriptProps {
  session: Session;
  state: State;
  language: Language;
  render: Render;
  sheet: Sheet;
  now: number;
  /** Called when the newest message is on the screen. */
  atEnd(): void;
}

interface Page { key: number; messages: Message[] }

interface Window { from: number; to: number; active: string; behind: boolean }

/**
 * The messages: only the pages around the window are in the document, between two spacers. What the visitor looks at stays where it
 * is, whatever is added above or changes its height: an anchor is remembered, and the scroller follows it. At the end, it follows
 * the newest message.
 */
export class Transcript extends Component<TranscriptProps, Window> {
  override state: Window = { from: 0, to: Infinity, active: '', behind: false };
  readonly #log = createRef<HTMLDivElement>();
  readonly #heights = new Map<number, number>();
  #pages: Page[] = [];
  #sticky = true;
  #anchor: { row: Element; top: number } | undefined;
  #scrollTop = 0;
  #resize: ResizeObserver | undefined;
  #observed = new Set<Element>();

  override componentDidMount() {
    this.#resize = new ResizeObserver((entries) => this.#resized(entries));
    this.#resize.observe(this.#log.current!); // the keyboard of a phone takes a part of it
    this.#after();
  }

  override componentDidUpdate(before: TranscriptProps) {
    const mine = this.props.state.outbox.length > before.state.outbox.length;
    if (mine) this.#sticky = true; // who writes wants to see it
    this.#after();
  }

  override componentWillUnmount() {
    this.#resize?.disconnect();
  }

  /** Puts the scroller back after the element was taken out of the document and put in again. */
  restore() {
    if (this.#sticky) this.toEnd();
    else this.#log.current!.scrollTop = this.#scrollTop;
  }

  toEnd(focus = false) {
    this.#sticky = true;
    const log = this.#log.current!;
    this.setState({ from: Math.max(0, this.#pages.length - 3), to: Infinity, behind: false }, () => {
      log.scrollTop = log.scrollHeight;
      if (focus) log.focus({ preventScroll: true });
    });
  }

  #after() {
    const log = this.#log.current;
    if (!log) return;
    const pages = new Set(log.querySelectorAll('.page'));
    for (const e of this.#observed) if (!pages.has(e)) this.#unobserve(e);
    for (const e of pages) {
      this.#heights.set(Number((e as HTMLElement).dataset.page), (e as HTMLElement).offsetHeight);
      if (!this.#observed.has(e)) {
        this.#observed.add(e);
        this.#resize?.observe(e);
      }
    }
    this.#follow();
    this.#look();
  }

  #unobserve(e: Element) {
    this.#observed.delete(e);
    this.#resize?.unobserve(e);
  }

  #resized(entries: ResizeObserverEntry[]) {
    for (const { target } of entries) this.#heights.set(Number((target as HTMLElement).dataset.page), (target as HTMLElement).offsetHeight);
    this.#follow();
    this.#look();
  }

  /** Brings the scroller to where the visitor was. */
  #follow() {
    const log = this.#log.current!;
    if (this.#sticky) {
      if (log.scrollHeight - log.scrollTop - log.clientHeight > 1) log.scrollTop = log.scrollHeight;
    } else if (this.#anchor?.row.isConnected) {
      const moved = this.#anchor.row.getBoundingClientRect().top - log.getBoundingClientRect().top - this.#anchor.top;
      if (Math.abs(moved) >= 1) log.scrollTop += moved;
    }
    this.#mark();
  }

  /** Remembers the first row that is in the window. */
  #mark() {
    const log = this.#log.current!;
    this.#scrollTop = log.scrollTop;
    const top = log.getBoundingClientRect().top;
    for (const row of log.querySelectorAll('.row:not(.typing)')) {
      const r = row.getBoundingClientRect();
      if (r.bottom > top) {
        this.#anchor = { row, top: r.top - top };
        return;
      }
    }
  }

  readonly #scrolled = () => {
    const log = this.#log.current!;
    if (!log.clientHeight) return; // closed
    // Only who scrolls up leaves the end: the log may have shrunk, or its content grown, before the event of our own scrolling.
    this.#sticky = log.scrollHeight - log.scrollTop - log.clientHeight < 48 || (this.#sticky && log.scrollTop >= this.#scrollTop);
    if (this.#sticky) this.#follow();
    else this.#mark();
    this.#look();
  };

  /** Decides which pages are drawn, asks for older ones at the top, and says when the end is seen. */
  #look() {
    const log = this.#log.current!;
    if (!log.clientHeight) return;
    let y = 0;
    let from = -1;
    let to = 0;
    const top = log.scrollTop - MARGIN;
    const bottom = log.scrollTop + log.clientHeight + MARGIN;
    this.#pages.forEach((p, i) => {
      const height = this.#height(p);
      if (y + height > top && from < 0) from = i;
      if (y < bottom) to = i + 1;
      y += height;
    });
    if (this.#sticky) to = this.#pages.length;
    const { state } = this.props;
    if (log.scrollTop < MARGIN && state.older === 'more' && !this.#sticky) void this.props.session.loadOlder();
    if (log.scrollTop < MARGIN && state.older === 'more' && log.scrollHeight <= log.clientHeight + 1) void this.props.session.loadOlder();
    from = Math.max(0, from);
    if (from !== this.state.from || to !== Math.min(this.state.to, this.#pages.length) || this.state.behind === this.#sticky) {
      this.#keepFocus(from, to);
      this.setState({ from, to, behind: !this.#sticky });
    }
    if (this.#sticky) this.props.atEnd();
  }

  /** What leaves the document must not take the focus with it. */
  #keepFocus(from: number, to: number) {
    const log = this.#log.current!;
    const focused = (log.getRootNode() as ShadowRoot).activeElement;
    const page = focused?.closest<HTMLElement>('.page');
    if (!page || !log.contains(page)) return;
    const at = this.#pages.findIndex((p) => p.key === Number(page.dataset.page));
    if (at >= 0 && (at < from || at >= to)) log.focus({ preventScroll: true });
  }

  #height(p: Page): number {
    return this.#heights.get(p.key) ?? p.messages.length * GUESS;
  }

  /** The arrow keys walk through the messages; Enter goes into one, Escape comes back. */
  readonly #keys = (e: KeyboardEvent) => {
    const log = this.#log.current!;
    const rows = [...log.querySelectorAll<HTMLElement>('.row:not(.typing)')];
    const focused = (log.getRootNode() as ShadowRoot).activeElement as HTMLElement;
    const inside = focused.closest<HTMLElement>('.row');
    if (inside && focused !== inside) {
      if (e.key === 'Escape') {
        e.stopPropagation();
        e.preventDefault();
        inside.focus();
      }
      return;
    }
    const at = inside ? rows.indexOf(inside) : rows.length;
    const to = { ArrowUp: at - 1, ArrowDown: at + 1, Home: 0, End: rows.length - 1 }[e.key];
    if (e.key === 'Enter' && inside) {
      e.preventDefault();
      inside.querySelector<HTMLElement>('button:not(:disabled),a,[tabindex="0"]')?.focus();
    }
    if (to === undefined) return;
    e.preventDefault();
    const row = rows[Math.max(0, Math.min(rows.length - 1, to))];
    if (!row) return;
    this.setState({ active: row.dataset.key! });
    row.focus();
    row.scrollIntoView({ block: 'nearest' });
  };

  /** A page keeps its messages as long as they are the same. */
  #paginate(messages: Message[], base: number): Page[] {
    const pages: Page[] = [];
    for (let i = 0; i < messages.length; ) {
      const key = Math.floor((base + i) / SIZE);
      const end = Math.min(messages.length, (key + 1) * SIZE - base);
      pages.push({ key, messages: messages.slice(i, end) });
      i = end;
    }
    return pages;
  }

  override render(p: TranscriptProps, w: Window) {
    const { state, language, session } = p;
    this.#pages = this.#paginate(state.messages, state.base);
    const count = this.#pages.length;
    const from = Math.min(w.from, Math.max(0, count - 1));
    const to = Math.min(count, Math.max(w.to, from + 1));
    const drawn = this.#pages.slice(from, to);
    const sum = (pages: Page[]) => pages.reduce((s, page) => s + this.#height(page), 0);
    p.sheet.set('--above', `${sum(this.#pages.slice(0, from))}px`);
    p.sheet.set('--below', `${sum(this.#pages.slice(to))}px`);
    const last = state.messages.at(-1);
    const lastReply = state.messages.findLastIndex((m) => m.isFromSupport);
    const common = { language, render: p.render, active: w.active, now: p.now };
    return (
      <div class="transcript">
        <div ref={this.#log} class="scroll log" role="log" aria-live="off" aria-label={language.t('messages')} tabIndex={0} onScroll={this.#scrolled} onKeyDown={this.#keys}>
          <div class="top">
            {state.older === 'loading' && <p class="note spin">{language.t('loadingOlder')}</p>}
            {state.older === 'failed' && (
              <p class="note">
                {language.t('olderFailed')} <button type="button" class="textbutton" onClick={() => void session.loadOlder()}>{language.t('tryAgain')}</button>
              </p>
            )}
            {state.older === 'none' && from === 0 && <p class="note">{language.t(last || state.outbox.length ? 'chatStart' : 'empty')}</p>}
          </div>
          <div class="above" />
          {drawn.map((page, i) => {
            const at = (from + i === 0 ? 0 : page.key * SIZE - state.base);
            return (
              <PageView
                key={page.key}
                id={page.key}
                messages={page.messages}
                before={state.messages[at - 1]}
                after={state.messages[at + page.messages.length]}
                seen={lastReply >= 0 && state.messages[lastReply]!.createdAt > state.seen ? state.messages[lastReply]!.createdAt : state.seen}
                newest={last?.id ?? ''}
                answers={answersIn(state.messages, page.messages)}
                {...common}
              />
            );
          })}
          <div class="below" />
          {state.writing && <BeingWritten writing={state.writing} session={session} language={language} render={p.render} />}
          {state.outbox.length > 0 && (
            <div class="page" data-page="outbox">
              {state.outbox.map((item, i) => (
                <Pending key={item.key} item={item} last={i === state.outbox.length - 1} share={state.progress[item.key]} session={session} language={language} offline={state.connection !== 'online'} />
              ))}
            </div>
          )}
          {state.typing.length > 0 && (
            <div class="row theirs typing" aria-hidden="true">
              <Avatar name={state.typing[0]!} class="small" />
              <div class="bubble"><i /><i /><i /></div>
            </div>
          )}
        </div>
        {w.behind && (
          <button type="button" class={state.unread ? 'pill new' : 'pill'} aria-label={state.unread ? undefined : language.t('toNewest')} onClick={() => this.toEnd(true)}>
            {state.unread > 0 && <span>{language.n('newMessages', state.unread)}</span>}
            <Icon name="down" />
          </button>
        )}
      </div>
    );
  }
}

/** What was chosen of the questions on a page: by the id of the question. */
function answersIn(all: Message[], page: Message[]): string {
  const asked = new Set(page.filter((m) => m.isFromSupport).map((m) => m.id));
  const found: Record<string, string> = {};
  for (const m of all) {
    const to = m.data.replyTo;
    if (m.type === 'MULTIPLE_CHOICE_REPLY' && typeof to === 'string' && asked.has(to) && typeof m.data.payload === 'string') found[to] = m.data.payload;
  }
  return JSON.stringify(found);
}

interface PageProps {
  id: number;
  messages: Message[];
  before: Message | undefined;
  after: Message | undefined;
  /** Up to when the other side has read: what was sent before it last wrote has been read too. */
  seen: string;
  newest: string;
  answers: string;
  active: string;
  language: Language;
  render: Render;
  now: number;
}

class PageView extends Component<PageProps> {
  override shouldComponentUpdate(next: PageProps) {
    const p = this.props;
    if (next.messages.length !== p.messages.length || next.messages.some((m, i) => m !== p.messages[i])) return true;
    const touches = (key: string) => key !== '' && next.messages.some((m) => m.id === key);
    if (next.active !== p.active && (touches(next.active) || touches(p.active))) return true;
    if (next.newest !== p.newest && (touches(next.newest) || touches(p.newest))) return true;
    return next.before !== p.before || next.after !== p.after || next.seen !== p.seen || next.answers !== p.answers || next.language !== p.language || next.render !== p.render || next.now !== p.now;
  }

  override render({ messages, before, after, id, active, newest, answers, ...p }: PageProps) {
    const chosen = JSON.parse(answers) as Record<string, string>;
    return (
      <div class="page" data-page={id}>
        {messages.map((m, i) => (
          <Row
            key={m.id}
            message={m}
            before={messages[i - 1] ?? before}
            after={messages[i + 1] ?? after}
            reachable={m.id === active || m.id === newest}
            chosen={chosen[m.id]}
            {...p}
          />
        ))}
      </div>
    );
  }
}

interface RowProps {
  message: Message;
  before: Message | undefined;
  after: Message | undefined;
  reachable: boolean;
  chosen: string | undefined;
  seen: string;
  language: Language;
  render: Render;
  now: number;
}

const at = (m: Message) => Date.parse(m.createdAt);

const joined = (a: Message | undefined, b: Message | undefined): boolean =>
  !!a && !!b && a.isFromSupport === b.isFromSupport && a.nameOfSender === b.nameOfSender && at(b) - at(a) < GROUP && midnight(at(a)) === midnight(at(b));

function Row({ message: m, before, after, reachable, chosen, seen, language, render, now }: RowProps) {
  const first = !joined(before, m);
  const last = !joined(m, after);
  const day = !before || midnight(at(before)) !== midnight(at(m));
  const side = m.isFromSupport ? 'theirs' : 'mine';
  const read = !m.isFromSupport && seen >= m.createdAt;
  const who = m.isFromSupport ? m.nameOfSender : language.t('you');
  const notice = noticeText(m, language);
  const heading = day && <h3 class="day"><span>{language.day(at(m), now)}</span></h3>;
  if (notice) {
    return (
      <>
        {heading}
        <article class="row notice" data-key={m.id} data-id={m.id} tabIndex={-1} aria-label={language.full(at(m))}><p class="note">{notice}</p></article>
      </>
    );
  }
  return (
    <>
      {heading}
      <article class={`row ${side}${first ? ' first' : ''}${last ? ' last' : ''} t-${m.type.toLowerCase()}`} data-key={m.id} data-id={m.id} tabIndex={-1} aria-label={`${who}, ${language.full(at(m))}`}>
        {m.isFromSupport && (last ? <Avatar name={m.nameOfSender} class="small" /> : <span class="avatar small none" />)}
        <div class="body">
          {first && m.isFromSupport && <p class="who" dir="auto">{m.nameOfSender}</p>}
          <div class="bubble"><Content message={m} render={render} reachable={reachable} chosen={chosen} /></div>
          {last && (
            <p class="meta">
              <time dateTime={m.createdAt} title={language.full(at(m))}>{language.ago(at(m), now)}</time>
              {!m.isFromSupport && <span class={read ? 'mark read' : 'mark'}><Icon name={read ? 'checks' : 'check'} />{language.t(read ? 'seen' : 'sent')}</span>}
            </p>
          )}
        </div>
      </article>
    </>
  );
}

/** A message that a bot is writing. It is read out when it is complete, and not before. */
function BeingWritten({ writing: w, session, language, render }: { writing: Writing; session: Session; language: Language; render: Render }) {
  return (
    <div class="page" data-page="writing">
      <article class={`row theirs first last writing${w.done ? ' done' : ''}`} data-key={w.messageId} tabIndex={-1} aria-busy={!w.done} aria-label={w.nameOfSender}>
        <Avatar name={w.nameOfSender} class="small" />
        <div class="body">
          <p class="who" dir="auto">{w.nameOfSender}</p>
          <div class="bubble"><Words text={w.text} render={render} reachable={false} /></div>
          <p class="meta">
            {!w.done && <button type="button" class="textbutton" onClick={() => session.stopWriting()}>{language.t('stopWriting')}</button>}
          </p>
        </div>
      </article>
    </div>
  );
}

interface PendingProps { item: OutboxItem; last: boolean; share: number | undefined; session: Session; language: Language; offline: boolean }

/** A message that is on its way. */
function Pending({ item, last, share = 0, session, language, offline }: PendingProps) {
  const file = item.file;
  const name = file ? file.name : String(item.body?.data.text ?? '');
  const word = language.t(item.failed ? 'failed' : offline ? 'waiting' : 'sending');
  return (
    <article class={`row mine pending${item.failed ? ' bad' : ''}`} data-key={item.key} tabIndex={-1} aria-label={`${language.t('you')}, ${word}`}>
      <div class="body">
        <div class="bubble">
          {file ? <PendingFile item={item} share={share} session={session} language={language} /> : <p class="words" dir="auto">{name}</p>}
        </div>
        {item.failed ? (
          <p class="meta bad">
            <Icon name="alert" /> {word}
            <button type="button" class="textbutton" onClick={() => session.outbox.retry(item.key)}>{language.t('retry')}</button>
            <button type="button" class="textbutton" onClick={() => session.discard(item.key)}>{language.t('discard')}</button>
          </p>
        ) : (
          last && <p class="meta"><span class="mark"><Icon name="clock" />{word}</span></p>
        )}
      </div>
    </article>
  );
}

class PendingFile extends Component<{ item: OutboxItem; share: number; session: Session; language: Language }, { blob?: Blob }> {
  #gone = false;

  override componentDidMount() {
    if (/^image\/(?!svg)/.test(this.props.item.file!.mime)) {
      void this.props.session.storage.blob(this.props.item.key).then((blob) => !this.#gone && blob && this.setState({ blob }));
    }
  }

  override componentWillUnmount() {
    this.#gone = true;
  }

  override render() {
    const { item, share, session, language } = this.props;
    const file = item.file!;
    const name = nameOf({ fileName: file.name }, language.t('file'));
    const percent = language.percent(share);
    return (
      <>
        {this.state.blob && <Pixels source={this.state.blob} alt="" class="shot" />}
        <div class="filelink">
          <span class="disc"><Icon name="file" /></span>
          <span class="filetext"><span class="filename" dir="auto">{name}</span><span class="foot">{language.bytes(file.size)}</span></span>
          {!item.failed && <button type="button" class="round" aria-label={language.t('cancelUpload', { name })} onClick={() => session.discard(item.key)}><Icon name="close" /></button>}
        </div>
        {!item.failed && <progress max={1} value={share} aria-label={language.t('uploading', { name, percent })} />}
        {file.caption && <p class="words" dir="auto">{file.caption}</p>}
      </>
    );
  }
}
