import { Component, createRef } from 'preact';
import type { Data, Message } from '@parley/shared/message.js';
import type { StreamedMessage } from '@parley/shared/parts.js';
import { Content, nameOf, LinkedText, type Render } from '@parley/shared/render/content.js';
import { Icon } from '@parley/shared/render/icon.js';
import { BitmapCanvas } from '@parley/shared/render/picture.js';
import { midnight, type Language } from '../i18n.js';
import type { OutboxItem } from '../state/outbox.js';
import type { Session } from '../state/session.js';
import type { State } from '../state/reducer.js';
import { Avatar } from './avatar.js';
import type { Sheet } from './sheet.js';
import { noticeText } from './support.js';

/** Messages per page. Pages are the unit of virtualisation. */
const PAGE_SIZE = 20;
/** Estimated height of a message that is not measured yet, in pixels. */
const ESTIMATED_ROW_HEIGHT = 76;
/** Distance above and below the viewport within which pages are rendered, in pixels. */
const OVERSCAN = 900;
const GROUP_INTERVAL = 5 * 60_000;

export interface TranscriptProps {
  session: Session;
  state: State;
  language: Language;
  render: Render;
  sheet: Sheet;
  now: number;
  /** Called when the end of the transcript is visible. */
  onEndVisible(): void;
}

interface Page {
  key: number;
  messages: Message[];
}

interface TranscriptState {
  from: number;
  to: number;
  active: string;
  scrolledUp: boolean;
}

/**
 * The virtualised message list: only the pages around the viewport are in the DOM, between two spacers. At the end it sticks to the
 * newest message. Elsewhere it does its own scroll anchoring: it remembers the first visible row and adjusts scrollTop when content
 * above it is added or resized.
 */
export class Transcript extends Component<TranscriptProps, TranscriptState> {
  override state: TranscriptState = { from: 0, to: Infinity, active: '', scrolledUp: false };
  readonly #log = createRef<HTMLDivElement>();
  readonly #pageHeights = new Map<number, number>();
  #pages: Page[] = [];
  #stickToEnd = true;
  #anchor: { row: Element; top: number } | undefined;
  #scrollTop = 0;
  #resizeObserver: ResizeObserver | undefined;
  #observedPages = new Set<Element>();

  override componentDidMount() {
    this.#resizeObserver = new ResizeObserver((entries) => this.#onResize(entries));
    this.#resizeObserver.observe(this.#log.current!); // the on-screen keyboard changes its height
    this.#afterRender();
  }

  /** Whether the newest message is in view, also as more arrive. */
  get atEnd(): boolean {
    return this.#stickToEnd;
  }

  /** Returns the focused message. */
  override getSnapshotBeforeUpdate() {
    return this.#focused()?.closest('.row');
  }

  override componentDidUpdate(before: TranscriptProps, _: TranscriptState, focusedRow?: Element | null) {
    const submitted = this.props.state.outbox.length > before.state.outbox.length;
    if (submitted) this.#stickToEnd = true; // show the message that the visitor has just sent
    this.#afterRender();
    if (focusedRow && !focusedRow.isConnected && !this.#focused()) this.#focusSuccessor(focusedRow);
  }

  /** Moves the focus to the message that has replaced a pending or streamed one: the newest of the same side. */
  #focusSuccessor(row: Element) {
    const log = this.#log.current!;
    const side = row.classList.contains('mine') ? 'mine' : 'theirs';
    const stored = [...log.querySelectorAll<HTMLElement>(`.${side}:not(.pending,.writing,.typing)`)].at(-1);
    (stored ?? log).focus({ preventScroll: true });
  }

  #focused(): Element | null {
    return (this.#log.current!.getRootNode() as ShadowRoot).activeElement;
  }

  override componentWillUnmount() {
    this.#resizeObserver?.disconnect();
  }

  /** Restores the scroll position, which the browser resets while the element is hidden or detached. */
  restore() {
    if (this.#stickToEnd) this.scrollToEnd();
    else this.#log.current!.scrollTop = this.#scrollTop;
  }

  scrollToEnd(focus = false) {
    this.#stickToEnd = true;
    const log = this.#log.current!;
    this.setState({ from: Math.max(0, this.#pages.length - 3), to: Infinity, scrolledUp: false }, () => {
      log.scrollTop = log.scrollHeight;
      if (focus) log.focus({ preventScroll: true });
    });
  }

  #afterRender() {
    const log = this.#log.current;
    if (!log) return;
    const pages = new Set(log.querySelectorAll('.page'));
    for (const e of this.#observedPages) if (!pages.has(e)) this.#unobserve(e);
    for (const e of pages) {
      this.#pageHeights.set(Number((e as HTMLElement).dataset.page), (e as HTMLElement).offsetHeight);
      if (!this.#observedPages.has(e)) {
        this.#observedPages.add(e);
        this.#resizeObserver?.observe(e);
      }
    }
    this.#adjustScroll();
    this.#updateWindow();
  }

  #unobserve(e: Element) {
    this.#observedPages.delete(e);
    this.#resizeObserver?.unobserve(e);
  }

  #onResize(entries: ResizeObserverEntry[]) {
    for (const { target } of entries)
      this.#pageHeights.set(Number((target as HTMLElement).dataset.page), (target as HTMLElement).offsetHeight);
    this.#adjustScroll();
    this.#updateWindow();
  }

  /** Sticks to the end, or scrolls so that the anchor row keeps its position in the viewport. */
  #adjustScroll() {
    const log = this.#log.current!;
    if (this.#stickToEnd) {
      if (log.scrollHeight - log.scrollTop - log.clientHeight > 1) log.scrollTop = log.scrollHeight;
    } else if (this.#anchor?.row.isConnected) {
      const moved = this.#anchor.row.getBoundingClientRect().top - log.getBoundingClientRect().top - this.#anchor.top;
      if (Math.abs(moved) >= 1) log.scrollTop += moved;
    }
    this.#rememberAnchor();
  }

  /** Remembers the scroll position, and the first visible row as scroll anchor. */
  #rememberAnchor() {
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

  readonly #onScroll = () => {
    const log = this.#log.current!;
    if (!log.clientHeight) return; // the panel is hidden
    // Stay at the end unless scrollTop has decreased: the log may shrink or its content grow before the event of our own scroll arrives.
    this.#stickToEnd =
      log.scrollHeight - log.scrollTop - log.clientHeight < 48 ||
      (this.#stickToEnd && log.scrollTop >= this.#scrollTop);
    if (this.#stickToEnd) this.#adjustScroll();
    else this.#rememberAnchor();
    this.#updateWindow();
  };

  /** Computes which pages to render, loads older messages near the top, and reports when the end is visible. */
  #updateWindow() {
    const log = this.#log.current!;
    if (!log.clientHeight) return;
    let y = 0;
    let from = -1;
    let to = 0;
    const top = log.scrollTop - OVERSCAN;
    const bottom = log.scrollTop + log.clientHeight + OVERSCAN;
    this.#pages.forEach((p, i) => {
      const height = this.#heightOf(p);
      if (y + height > top && from < 0) from = i;
      if (y < bottom) to = i + 1;
      y += height;
    });
    if (this.#stickToEnd) to = this.#pages.length;
    const { state } = this.props;
    if (log.scrollTop < OVERSCAN && state.older === 'more' && !this.#stickToEnd)
      void this.props.session.history.loadOlder();
    if (log.scrollTop < OVERSCAN && state.older === 'more' && log.scrollHeight <= log.clientHeight + 1)
      void this.props.session.history.loadOlder();
    from = Math.max(0, from);
    if (
      from !== this.state.from ||
      to !== Math.min(this.state.to, this.#pages.length) ||
      this.state.scrolledUp === this.#stickToEnd
    ) {
      this.#rescueFocus(from, to);
      this.setState({ from, to, scrolledUp: !this.#stickToEnd });
    }
    if (this.#stickToEnd) this.props.onEndVisible();
  }

  /** Moves focus to the log before the page with the focused element is removed from the DOM. */
  #rescueFocus(from: number, to: number) {
    const log = this.#log.current!;
    const page = this.#focused()?.closest<HTMLElement>('.page');
    if (!page || !log.contains(page)) return;
    const at = this.#pages.findIndex((p) => p.key === Number(page.dataset.page));
    if (at >= 0 && (at < from || at >= to)) log.focus({ preventScroll: true });
  }

  #heightOf(p: Page): number {
    return this.#pageHeights.get(p.key) ?? p.messages.length * ESTIMATED_ROW_HEIGHT;
  }

  /** Arrow keys, Home and End move between messages. Enter focuses the first control of a message, Escape returns to it. */
  readonly #onKeyDown = (e: KeyboardEvent) => {
    const log = this.#log.current!;
    const rows = [...log.querySelectorAll<HTMLElement>('.row:not(.typing)')];
    const focused = this.#focused()!;
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

  /** Splits messages into pages aligned to ordinals, so that loading older messages does not shift page boundaries. */
  #paginate(messages: Message[], base: number): Page[] {
    const pages: Page[] = [];
    for (let i = 0; i < messages.length; ) {
      const key = Math.floor((base + i) / PAGE_SIZE);
      const end = Math.min(messages.length, (key + 1) * PAGE_SIZE - base);
      pages.push({ key, messages: messages.slice(i, end) });
      i = end;
    }
    return pages;
  }

  override render(p: TranscriptProps, w: TranscriptState) {
    const { state, language, session } = p;
    this.#pages = this.#paginate(state.messages, state.firstOrdinal);
    const count = this.#pages.length;
    const from = Math.min(w.from, Math.max(0, count - 1));
    const to = Math.min(count, Math.max(w.to, from + 1));
    const rendered = this.#pages.slice(from, to);
    const totalHeight = (pages: Page[]) => pages.reduce((s, page) => s + this.#heightOf(page), 0);
    p.sheet.set('--above', `${totalHeight(this.#pages.slice(0, from))}px`);
    p.sheet.set('--below', `${totalHeight(this.#pages.slice(to))}px`);
    const last = state.messages.at(-1);
    const common = { language, render: p.render, active: w.active, now: p.now };
    return (
      <div class="transcript">
        <div
          ref={this.#log}
          class="scroll log"
          role="log"
          aria-live="off"
          aria-label={language.t('messages')}
          tabIndex={0}
          onScroll={this.#onScroll}
          onKeyDown={this.#onKeyDown}
        >
          <div class="top">
            {state.older === 'loading' && <p class="note spin">{language.t('loadingOlder')}</p>}
            {state.older === 'failed' && (
              <p class="note">
                {language.t('olderFailed')}{' '}
                <button type="button" class="textbutton" onClick={() => void session.history.loadOlder()}>
                  {language.t('tryAgain')}
                </button>
              </p>
            )}
            {state.older === 'none' && from === 0 && (
              <p class="note">{language.t(last || state.outbox.length ? 'chatStart' : 'empty')}</p>
            )}
          </div>
          <div class="above" />
          {rendered.map((page, i) => {
            const at = from + i === 0 ? 0 : page.key * PAGE_SIZE - state.firstOrdinal;
            return (
              <PageView
                key={page.key}
                id={page.key}
                messages={page.messages}
                before={state.messages[at - 1]}
                after={state.messages[at + page.messages.length]}
                seen={state.seen}
                ends={state.ends}
                newest={last?.id ?? ''}
                answers={chosenPayloads(state, page.messages)}
                {...common}
              />
            );
          })}
          <div class="below" />
          {state.streaming && (
            <StreamedRow message={state.streaming} session={session} language={language} render={p.render} />
          )}
          {state.outbox.length > 0 && (
            <div class="page" data-page="outbox">
              {state.outbox.map((item, i) => (
                <PendingMessage
                  key={item.key}
                  item={item}
                  last={i === state.outbox.length - 1}
                  share={state.progress[item.key]}
                  session={session}
                  language={language}
                  offline={state.connection !== 'online'}
                />
              ))}
            </div>
          )}
          {state.typing.length > 0 && (
            <div class="row theirs typing" aria-hidden="true">
              <Avatar name={state.typing[0]!} class="small" />
              <div class="bubble">
                <i />
                <i />
                <i />
              </div>
            </div>
          )}
        </div>
        {w.scrolledUp && (
          <button
            type="button"
            class={state.unread ? 'pill new' : 'pill'}
            aria-label={state.unread ? undefined : language.t('toNewest')}
            onClick={() => this.scrollToEnd(true)}
          >
            {state.unread > 0 && <span>{language.n('newMessages', state.unread)}</span>}
            <Icon name="down" />
          </button>
        )}
      </div>
    );
  }
}

/** A chosen payload, and whether it is still being sent. */
type Answer = [payload: string, choosing?: boolean];

/** The last answers to the questions on a page, by question id. JSON, so that shouldComponentUpdate compares it by value. */
function chosenPayloads({ messages, outbox }: State, page: Message[]): string {
  const asked = new Set(page.filter((m) => m.isFromSupport).map((m) => m.id));
  const found: Record<string, Answer> = {};
  const add = (type: string, { replyTo: to, payload }: Data, choosing?: boolean) => {
    if (type === 'MULTIPLE_CHOICE_REPLY' && typeof to === 'string' && asked.has(to) && typeof payload === 'string')
      found[to] = [payload, choosing];
  };
  for (const m of messages) add(m.type, m.data);
  for (const { body, failed } of outbox) if (body && !failed) add(body.type, body.data, true);
  return JSON.stringify(found);
}

interface PageProps {
  id: number;
  messages: Message[];
  before: Message | undefined;
  after: Message | undefined;
  /** The agents have read up to this time. */
  seen: string;
  ends: string[];
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
    return (
      next.before !== p.before ||
      next.after !== p.after ||
      next.seen !== p.seen ||
      next.answers !== p.answers ||
      next.language !== p.language ||
      next.render !== p.render ||
      next.now !== p.now
    );
  }

  override render({ messages, before, after, id, active, newest, answers, ...p }: PageProps) {
    const chosen = JSON.parse(answers) as Record<string, Answer>;
    return (
      <div class="page" data-page={id}>
        {messages.map((m, i) => (
          <Row
            key={m.id}
            message={m}
            before={messages[i - 1] ?? before}
            after={messages[i + 1] ?? after}
            reachable={m.id === active || m.id === newest}
            answer={chosen[m.id]}
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
  answer: Answer | undefined;
  seen: string;
  ends: string[];
  language: Language;
  render: Render;
  now: number;
}

const timeOf = (m: Message) => Date.parse(m.createdAt);

const sameGroup = (a: Message | undefined, b: Message | undefined): boolean =>
  !!a &&
  !!b &&
  a.isFromSupport === b.isFromSupport &&
  a.nameOfSender === b.nameOfSender &&
  timeOf(b) - timeOf(a) < GROUP_INTERVAL &&
  midnight(timeOf(a)) === midnight(timeOf(b));

function Row({ message: m, before, after, reachable, answer, seen, ends, language, render, now }: RowProps) {
  const opens = !!before && ends.includes(before.id); // the first message of its chat
  const first = opens || !sameGroup(before, m);
  const last = !sameGroup(m, after) || ends.includes(m.id);
  const day = opens || !before || midnight(timeOf(before)) !== midnight(timeOf(m));
  const side = m.isFromSupport ? 'theirs' : 'mine';
  const read = !m.isFromSupport && seen >= m.createdAt;
  const author = m.isFromSupport ? m.nameOfSender : language.t('you');
  const notice = noticeText(m, language, now);
  const heading = day && (
    <h3 class={opens ? 'day opens' : 'day'}>
      <span>{language.day(timeOf(m), now)}</span>
    </h3>
  );
  if (notice) {
    return (
      <>
        {heading}
        <article class="row notice" data-key={m.id} data-id={m.id} tabIndex={-1} aria-label={language.full(timeOf(m))}>
          <p class="note">{notice}</p>
        </article>
      </>
    );
  }
  return (
    <>
      {heading}
      <article
        class={`row ${side}${first ? ' first' : ''}${last ? ' last' : ''} t-${m.type.toLowerCase()}`}
        data-key={m.id}
        data-id={m.id}
        tabIndex={-1}
        aria-label={`${author}, ${language.full(timeOf(m))}`}
      >
        {m.isFromSupport &&
          (last ? <Avatar name={m.nameOfSender} class="small" /> : <span class="avatar small none" />)}
        <div class="body">
          {first && m.isFromSupport && (
            <p class="author" dir="auto">
              {m.nameOfSender}
            </p>
          )}
          <div class="bubble">
            <Content message={m} render={render} reachable={reachable} chosen={answer?.[0]} choosing={answer?.[1]} />
          </div>
          {last && (
            <p class="meta">
              <time dateTime={m.createdAt} title={language.full(timeOf(m))}>
                {language.ago(timeOf(m), now)}
              </time>
              {!m.isFromSupport && (
                <span class={read ? 'mark read' : 'mark'}>
                  <Icon name={read ? 'checks' : 'check'} />
                  {language.t(read ? 'seen' : 'sent')}
                </span>
              )}
            </p>
          )}
        </div>
      </article>
    </>
  );
}

/** A message that a bot is streaming. It is announced only when it is complete. */
function StreamedRow({
  message: m,
  session,
  language,
  render,
}: {
  message: StreamedMessage;
  session: Session;
  language: Language;
  render: Render;
}) {
  return (
    <div class="page" data-page="writing">
      <article
        class={`row theirs first last writing${m.done ? ' done' : ''}`}
        data-key={m.messageId}
        tabIndex={-1}
        aria-busy={!m.done}
        aria-label={m.nameOfSender}
      >
        <Avatar name={m.nameOfSender} class="small" />
        <div class="body">
          <p class="author" dir="auto">
            {m.nameOfSender}
          </p>
          <div class="bubble">
            <LinkedText text={m.text} render={render} reachable={false} />
          </div>
          <p class="meta">
            {!m.done && (
              <button type="button" class="textbutton" onClick={() => session.streaming.stop()}>
                {language.t('stopWriting')}
              </button>
            )}
          </p>
        </div>
      </article>
    </div>
  );
}

interface PendingMessageProps {
  item: OutboxItem;
  last: boolean;
  share: number | undefined;
  session: Session;
  language: Language;
  offline: boolean;
}

/** A message in the outbox. */
function PendingMessage({ item, last, share = 0, session, language, offline }: PendingMessageProps) {
  const file = item.file;
  const name = file ? file.name : String(item.body?.data.text ?? '');
  const word = language.t(item.failed ? 'failed' : offline ? 'waiting' : 'sending');
  return (
    <article
      class={`row mine pending${item.failed ? ' bad' : ''}`}
      data-key={item.key}
      tabIndex={-1}
      aria-label={`${language.t('you')}, ${word}`}
    >
      <div class="body">
        <div class="bubble">
          {file ? (
            <PendingFile item={item} share={share} session={session} language={language} />
          ) : (
            <p class="words" dir="auto">
              {name}
            </p>
          )}
        </div>
        {item.failed ? (
          <p class="meta bad">
            <Icon name="alert" /> {word}
            <button type="button" class="textbutton" onClick={() => session.sending.retry(item.key)}>
              {language.t('retry')}
            </button>
            <button type="button" class="textbutton" onClick={() => session.sending.discard(item.key)}>
              {language.t('discard')}
            </button>
          </p>
        ) : (
          last && (
            <p class="meta">
              <span class="mark">
                <Icon name="clock" />
                {word}
              </span>
            </p>
          )
        )}
      </div>
    </article>
  );
}

class PendingFile extends Component<
  { item: OutboxItem; share: number; session: Session; language: Language },
  { blob?: Blob }
> {
  #unmounted = false;

  override componentDidMount() {
    if (/^image\/(?!svg)/.test(this.props.item.file!.mime)) {
      void this.props.session.storage
        .blob(this.props.item.key)
        .then((blob) => !this.#unmounted && blob && this.setState({ blob }));
    }
  }

  override componentWillUnmount() {
    this.#unmounted = true;
  }

  override render() {
    const { item, share, session, language } = this.props;
    const file = item.file!;
    const name = nameOf({ fileName: file.name }, language.t('file'));
    const percent = language.percent(share);
    return (
      <>
        {this.state.blob && <BitmapCanvas source={this.state.blob} alt="" class="shot" />}
        <div class="filelink">
          <span class="disc">
            <Icon name="file" />
          </span>
          <span class="filetext">
            <span class="filename" dir="auto">
              {name}
            </span>
            <span class="foot">{language.bytes(file.size)}</span>
          </span>
          {!item.failed && (
            <button
              type="button"
              class="round"
              aria-label={language.t('cancelUpload', { name })}
              onClick={() => session.sending.discard(item.key)}
            >
              <Icon name="close" />
            </button>
          )}
        </div>
        {!item.failed && <progress max={1} value={share} aria-label={language.t('uploading', { name, percent })} />}
        {file.caption && (
          <p class="words" dir="auto">
            {file.caption}
          </p>
        )}
      </>
    );
  }
}
