import { Component, createRef } from 'preact';
import type { Render } from '@parley/shared/render/content.js';
import { Icon } from '@parley/shared/render/icon.js';
import type { Language } from '../i18n.js';
import type { Session } from '../state/session.js';
import type { State } from '../state/reducer.js';
import { Avatar } from './avatar.js';
import { chosenPayloads, paginate, PAGE_SIZE, PageView, type Page } from './page.js';
import { PendingMessage } from './pending.js';
import type { Sheet } from './sheet.js';
import { StreamedRow } from './streamed.js';

/** Estimated height of a message that is not measured yet, in pixels. */
const ESTIMATED_ROW_HEIGHT = 76;
/** Distance above and below the viewport within which pages are rendered, in pixels. */
const OVERSCAN = 900;
/**
 * Distance beyond that within which rendered pages stay, in pixels. It exceeds the height of the notes above the first
 * page: they come and go with that page and move it, so without a margin it could come and go for ever.
 */
const KEEP = 200;

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

interface TranscriptState {
  from: number;
  to: number;
  active: string;
  scrolledUp: boolean;
}

/**
 * The virtualised message list: only the pages around the viewport are in the DOM, between two spacers. At the end it
 * sticks to the newest message. Elsewhere it does its own scroll anchoring: it remembers the first visible row and
 * adjusts scrollTop when content above it is added or resized.
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
    // Stay at the end unless scrollTop has decreased: the log may shrink or its content grow before the event of our
    // own scroll arrives.
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
      const margin = i >= this.state.from && i < this.state.to ? KEEP : 0;
      if (y + height > top - margin && from < 0) from = i;
      if (y < bottom + margin) to = i + 1;
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

  /**
   * Arrow keys, Home and End move between messages. Enter focuses the first control of a message, Escape returns to it.
   */
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

  override render(p: TranscriptProps, w: TranscriptState) {
    const { state, language } = p;
    this.#pages = paginate(state.messages, state.firstOrdinal);
    const count = this.#pages.length;
    const from = Math.min(w.from, Math.max(0, count - 1));
    const to = Math.min(count, Math.max(w.to, from + 1));
    const totalHeight = (pages: Page[]) => pages.reduce((s, page) => s + this.#heightOf(page), 0);
    p.sheet.set('--above', `${totalHeight(this.#pages.slice(0, from))}px`);
    p.sheet.set('--below', `${totalHeight(this.#pages.slice(to))}px`);
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
          <Top {...p} isFirst={from === 0} />
          <div class="above" />
          {this.#pages.slice(from, to).map((page) => this.#renderPage(page))}
          <div class="below" />
          {state.streaming && <StreamedRow {...p} message={state.streaming} />}
          {state.outbox.length > 0 && <Outbox {...p} />}
          {state.typing.length > 0 && <TypingRow name={state.typing[0]!} />}
        </div>
        {w.scrolledUp && this.#renderPill()}
      </div>
    );
  }

  #renderPage({ key, messages }: Page) {
    const { state, language, render, now } = this.props;
    const at = Math.max(0, key * PAGE_SIZE - state.firstOrdinal); // the first page may begin within its ordinals
    return (
      <PageView
        key={key}
        id={key}
        messages={messages}
        before={state.messages[at - 1]}
        after={state.messages[at + messages.length]}
        seen={state.seen}
        ends={state.ends}
        newest={state.messages.at(-1)?.id ?? ''}
        answers={chosenPayloads(state, messages)}
        active={this.state.active}
        language={language}
        render={render}
        now={now}
      />
    );
  }

  /** The button that leads to the newest message. */
  #renderPill() {
    const { state, language } = this.props;
    return (
      <button
        type="button"
        class={state.unread ? 'pill new' : 'pill'}
        aria-label={state.unread ? undefined : language.t('toNewest')}
        onClick={() => this.scrollToEnd(true)}
      >
        {state.unread > 0 && <span>{language.n('newMessages', state.unread)}</span>}
        <Icon name="down" />
      </button>
    );
  }
}

/** What is above the first message: older ones are being loaded, or there are none. */
function Top({ state, language, session, isFirst }: TranscriptProps & { isFirst: boolean }) {
  return (
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
      {state.older === 'none' && isFirst && (
        <p class="note">{language.t(state.messages.length || state.outbox.length ? 'chatStart' : 'empty')}</p>
      )}
    </div>
  );
}

/** The messages that the server has not accepted yet. */
function Outbox({ state, language, session }: TranscriptProps) {
  return (
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
  );
}

function TypingRow({ name }: { name: string }) {
  return (
    <div class="row theirs typing" aria-hidden="true">
      <Avatar name={name} class="small" />
      <div class="bubble">
        <i />
        <i />
        <i />
      </div>
    </div>
  );
}
