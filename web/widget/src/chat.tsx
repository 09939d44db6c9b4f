// Entry point of the chat module, which the loader imports on demand.

import { render } from 'preact';
import { summary, type Message } from '@parley/shared/message.js';
import type { Chat, Host } from './host.js';
import { loadLanguage, type Language } from './i18n.js';
import { Session } from './state/session.js';
import type { State } from './state/reducer.js';
import type { ExtrasModule, MarkdownModule } from './ui/context.js';
import { type Loaded, OnDemand } from './ui/ondemand.js';
import { Panel } from './ui/panel.js';
import { Sheet } from './ui/sheet.js';
import styles from './ui/styles.css';
import { launcherColours, themeRules } from './ui/theme.js';
import { PageTitle } from './ui/title.js';
import { noticeText } from './ui/support.js';
import type { Transcript } from './ui/transcript.js';

/** Interval at which relative times, and the state of agents, are updated. */
const TIME_REFRESH_INTERVAL = 30_000;

declare const __EXTRAS__: string;
declare const __EXTRAS_INTEGRITY__: string;
declare const __MARKDOWN__: string;
declare const __MARKDOWN_INTEGRITY__: string;

/** Checks when compiling that the modules, which are loaded by their URLs, have the shape that is expected here. */
type Conforms<T extends Expected, Expected> = T;
type LoadedExtras = Conforms<typeof import('./extras.js'), ExtrasModule & Loaded>;
type LoadedMarkdown = Conforms<typeof import('./markdown.js'), MarkdownModule & Loaded>;

export async function mount(host: Host): Promise<Chat> {
  const screen = new ChatScreen(host);
  await screen.start();
  return screen;
}

class ChatScreen implements Chat {
  readonly #host: Host;
  readonly #session: Session;
  readonly #container = document.createElement('div');
  readonly #styles = new CSSStyleSheet();
  readonly #colours = new CSSStyleSheet();
  readonly #viewportSheet = new Sheet();
  readonly #extras: OnDemand<LoadedExtras>;
  readonly #markdown: OnDemand<LoadedMarkdown>;
  readonly #transcript: { current: Transcript | null } = { current: null };
  #language!: Language;
  #announcement = { text: '', count: 0 };
  #focusBeforeOpen: Element | null = null;
  #clock: ReturnType<typeof setInterval> | undefined;
  readonly #title = new PageTitle();
  #frame = 0;
  #fallbackTimer: ReturnType<typeof setTimeout> | undefined;
  #destroyed = false;

  constructor(host: Host) {
    this.#host = host;
    this.#session = new Session({
      host,
      onReply: (m) => this.#onReply(m),
      isReading: () => this.isOpen && document.visibilityState === 'visible' && !!this.#transcript.current?.atEnd,
    });
    this.#session.subscribe(() => this.#onStateChange());
    const onLoaded = () => this.#scheduleRender();
    this.#extras = new OnDemand(host, __EXTRAS__, __EXTRAS_INTEGRITY__, onLoaded);
    this.#markdown = new OnDemand(host, __MARKDOWN__, __MARKDOWN_INTEGRITY__, onLoaded);
    this.#styles.replaceSync(styles);
    this.#container.className = 'container';
    host.root.adoptedStyleSheets = [
      ...host.root.adoptedStyleSheets,
      this.#styles,
      this.#colours,
      this.#viewportSheet.sheet,
    ];
    host.root.append(this.#container);
    host.element.onkeydown = this.#onKeyDown; // of the launcher too
    window.visualViewport?.addEventListener('resize', this.#onViewportChange);
    window.visualViewport?.addEventListener('scroll', this.#onViewportChange);
    document.addEventListener('visibilitychange', this.#onVisibilityChange);
  }

  async start(): Promise<void> {
    this.#colours.replaceSync(themeRules({}));
    const starting = this.#session.start();
    this.#language = await loadLanguage(this.#host.language);
    this.#updateLabels();
    this.#scheduleRender();
    void starting;
  }

  get isOpen(): boolean {
    return this.#session.state.open;
  }

  open(): void {
    if (this.isOpen || this.#destroyed) return;
    const { root } = this.#host;
    this.#focusBeforeOpen = document.activeElement === root.host ? root.activeElement : document.activeElement;
    this.#clock = setInterval(this.#onTick, TIME_REFRESH_INTERVAL);
    this.#session.support.refresh();
    this.#onViewportChange();
    this.#session.opened();
    this.#host.refresh();
    this.#host.emit('open');
    this.#renderNow();
    this.#transcript.current?.restore();
  }

  readonly close = (): void => {
    if (!this.isOpen) return;
    const inside = this.#container.contains(this.#host.root.activeElement);
    clearInterval(this.#clock);
    this.#session.dispatch({ type: 'open', open: false });
    this.#renderNow();
    this.#host.refresh();
    this.#host.emit('close');
    if (!inside) return;
    const back =
      this.#focusBeforeOpen instanceof HTMLElement &&
      this.#focusBeforeOpen !== document.body &&
      this.#focusBeforeOpen.isConnected
        ? this.#focusBeforeOpen
        : this.#host.launcher;
    back.focus({ preventScroll: true });
  };

  identify(): void {
    this.#session.registration.identify();
  }

  logout(): void {
    this.#session.end();
  }

  forget(): void {
    this.#session.end();
  }

  setLanguage(): void {
    const wanted = this.#host.language;
    void loadLanguage(wanted).then((language) => {
      if (this.#destroyed || wanted !== this.#host.language) return;
      this.#language = language;
      this.#updateLabels();
      this.#scheduleRender();
    });
  }

  setTheme(): void {
    this.#scheduleRender();
  }

  reattached(): void {
    this.#transcript.current?.restore();
  }

  destroy(): void {
    this.#destroyed = true;
    clearInterval(this.#clock);
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#fallbackTimer);
    this.#title.restore();
    this.#session.destroy();
    window.visualViewport?.removeEventListener('resize', this.#onViewportChange);
    window.visualViewport?.removeEventListener('scroll', this.#onViewportChange);
    document.removeEventListener('visibilitychange', this.#onVisibilityChange);
    render(null, this.#container);
    this.#container.remove();
  }

  #updateLabels(): void {
    this.#host.closeLabel = this.#language.t('close');
    this.#host.refresh();
  }

  #previousState: State | undefined;
  #onStateChange(): void {
    if (this.#destroyed) return;
    const { state } = this.#session;
    const before = this.#previousState;
    this.#previousState = state;
    if (state.settings && state.settings !== before?.settings) {
      const configs = state.settings.widgetConfigs;
      this.#colours.replaceSync(themeRules(configs));
      this.#session.setColours(...launcherColours(configs));
    }
    if (before && state.connection !== before.connection && state.open && this.#language)
      this.#announceConnection(state, before);
    if (before && state.typing.length > before.typing.length && state.open && this.#language)
      this.#announce(this.#typingText(state.typing));
    if (state.unread !== before?.unread) this.#showUnread(state.unread);
    this.#scheduleRender();
  }

  /** Text of the typing announcement. */
  #typingText(names: string[]): string {
    const settings = this.#session.state.settings;
    return this.#language!.t('typing', {
      name: names.filter(Boolean).join(', ') || settings?.botName || settings?.name || '',
    });
  }

  /** Announces a connection change, but not the first successful connection. */
  #announceConnection(state: State, before: State): void {
    const c = state.connection;
    if (c === 'offline' || c === 'unavailable' || c === 'reconnecting') this.#announce(this.#language.t(c));
    else if (c === 'online' && before.connection !== 'connecting' && before.connection !== 'idle')
      this.#announce(this.#language.t('online'));
  }

  #onReply(m: Message): void {
    const { state } = this.#session;
    if (!this.#language) return;
    const seen = state.open && document.visibilityState === 'visible' && document.hasFocus();
    const notice = noticeText(m, this.#language, Date.now());
    const spoken = this.#markdown.loaded?.withoutMarks(m) ?? m;
    const said = summary(spoken, (kind) => this.#language.t(kind));
    if (state.open) this.#announce(notice || this.#language.t('saidBy', { name: m.nameOfSender, text: said }));
    if (state.sound && !seen)
      void this.#extras
        .load()
        .then((extras) => extras.chime(this.#host.key, m.id))
        .catch(() => {});
  }

  readonly #announce = (text: string): void => {
    this.#announcement = { text, count: this.#announcement.count + 1 };
    this.#scheduleRender();
  };

  /** Shows the unread count in the titles of the page and of the launcher. */
  #showUnread(unread: number): void {
    this.#host.launcher.title = unread && this.#language ? this.#language.n('unread', unread) : '';
    this.#title.show(unread, this.#language);
  }

  readonly #onTick = (): void => {
    this.#scheduleRender();
    if (document.visibilityState === 'visible') this.#session.support.refresh();
  };

  readonly #onKeyDown = (e: KeyboardEvent): void => {
    if (e.key !== 'Escape' || e.isComposing || !this.isOpen) return;
    e.stopPropagation();
    this.close();
  };

  readonly #onVisibilityChange = (): void => {
    if (document.visibilityState === 'visible') this.#scheduleRender();
  };

  /** Fits the panel into the visual viewport above the on-screen keyboard. A pinch-zoomed page keeps the full size. */
  readonly #onViewportChange = (): void => {
    const v = window.visualViewport;
    if (!v) return;
    const zoomed = v.scale > 1.01;
    this.#viewportSheet.set('--height', zoomed ? '100%' : `${v.height}px`);
    this.#viewportSheet.set('--top', zoomed ? '0' : `${v.offsetTop}px`);
  };

  #scheduleRender(): void {
    if (this.#frame) return;
    this.#frame = requestAnimationFrame(this.#renderNow);
    // A hidden page gets no animation frames, but its state still changes.
    this.#fallbackTimer = setTimeout(this.#renderNow, 100);
  }

  readonly #renderNow = (): void => {
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#fallbackTimer);
    this.#frame = 0;
    if (this.#destroyed || !this.#language) return;
    render(
      <Panel
        host={this.#host}
        session={this.#session}
        state={this.#session.state}
        language={this.#language}
        extras={this.#extras}
        markdown={this.#markdown}
        announce={this.#announce}
        close={this.close}
        sheet={this.#viewportSheet}
        now={Math.floor(Date.now() / TIME_REFRESH_INTERVAL) * TIME_REFRESH_INTERVAL}
        announcement={this.#announcement}
        transcript={this.#transcript}
      />,
      this.#container,
    );
  };
}
