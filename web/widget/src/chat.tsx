// The chat: everything that the loader asks for when the visitor opens the widget.

import { render } from 'preact';
import { summary, type Message } from '@parley/shared/message.js';
import type { Chat, Host } from './host.js';
import { loadLanguage, type Language } from './i18n.js';
import { chime } from './sound.js';
import { Session } from './state/session.js';
import type { State } from './state/reducer.js';
import { Extras } from './ui/extras.js';
import { Panel } from './ui/panel.js';
import { Sheet } from './ui/sheet.js';
import styles from './ui/styles.css';
import { launcherColours, themeRules } from './ui/theme.js';
import { noticeText } from './ui/support.js';
import type { Transcript } from './ui/transcript.js';

/** How often relative times are written again. */
const MINUTE = 30_000;

export async function mount(host: Host): Promise<Chat> {
  const screen = new ChatScreen(host);
  await screen.start();
  return screen;
}

class ChatScreen implements Chat {
  readonly #host: Host;
  readonly #session: Session;
  readonly #place = document.createElement('div');
  readonly #look = new CSSStyleSheet();
  readonly #colours = new CSSStyleSheet();
  readonly #sizes = new Sheet();
  readonly #extras: Extras;
  readonly #transcript: { current: Transcript | null } = { current: null };
  #language!: Language;
  #spoken = { text: '', count: 0 };
  #cameFrom: Element | null = null;
  #clock: ReturnType<typeof setInterval> | undefined;
  #title: { shown: string; own: string } | undefined;
  #frame = 0;
  #late: ReturnType<typeof setTimeout> | undefined;
  #ended = false;

  constructor(host: Host) {
    this.#host = host;
    this.#session = new Session({ host, arrived: (m) => this.#arrived(m) });
    this.#session.subscribe(() => this.#changed());
    this.#extras = new Extras(host, () => this.#draw());
    this.#look.replaceSync(styles);
    this.#place.className = 'place';
    host.root.adoptedStyleSheets = [...host.root.adoptedStyleSheets, this.#look, this.#colours, this.#sizes.sheet];
    host.root.append(this.#place);
    window.visualViewport?.addEventListener('resize', this.#viewport);
    window.visualViewport?.addEventListener('scroll', this.#viewport);
    document.addEventListener('visibilitychange', this.#seen);
  }

  async start(): Promise<void> {
    this.#colours.replaceSync(themeRules({}));
    const starting = this.#session.start();
    this.#language = await loadLanguage(this.#host.language);
    this.#labels();
    this.#draw();
    void starting;
  }

  get isOpen(): boolean {
    return this.#session.state.open;
  }

  open(): void {
    if (this.isOpen || this.#ended) return;
    const { root } = this.#host;
    this.#cameFrom = document.activeElement === root.host ? root.activeElement : document.activeElement;
    this.#clock = setInterval(() => this.#draw(), MINUTE);
    this.#viewport();
    this.#session.opened();
    this.#host.dress();
    this.#host.emit('open');
    this.#drawNow();
    this.#transcript.current?.restore();
  }

  readonly close = (): void => {
    if (!this.isOpen) return;
    const inside = this.#place.contains(this.#host.root.activeElement);
    clearInterval(this.#clock);
    this.#session.dispatch({ type: 'open', open: false });
    this.#drawNow();
    this.#host.dress();
    this.#host.emit('close');
    if (!inside) return;
    const back = this.#cameFrom instanceof HTMLElement && this.#cameFrom !== document.body && this.#cameFrom.isConnected ? this.#cameFrom : this.#host.launcher;
    back.focus({ preventScroll: true });
  };

  identify(): void {
    this.#session.identify();
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
      if (this.#ended || wanted !== this.#host.language) return;
      this.#language = language;
      this.#labels();
      this.#draw();
    });
  }

  setTheme(): void {
    this.#draw();
  }

  reattached(): void {
    this.#transcript.current?.restore();
  }

  destroy(): void {
    this.#ended = true;
    clearInterval(this.#clock);
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#late);
    this.#untitle();
    this.#session.destroy();
    window.visualViewport?.removeEventListener('resize', this.#viewport);
    window.visualViewport?.removeEventListener('scroll', this.#viewport);
    document.removeEventListener('visibilitychange', this.#seen);
    render(null, this.#place);
    this.#place.remove();
  }

  #labels(): void {
    this.#host.closeLabel = this.#language.t('close');
    this.#host.dress();
  }

  #before: State | undefined;
  #changed(): void {
    if (this.#ended) return;
    const { state } = this.#session;
    const before = this.#before;
    this.#before = state;
    if (state.settings && state.settings !== before?.settings) {
      const configs = state.settings.widgetConfigs;
      this.#colours.replaceSync(themeRules(configs));
      this.#session.setColours(...launcherColours(configs));
    }
    if (before && state.connection !== before.connection && state.open && this.#language) this.#tell(state, before);
    if (before && state.typing.length > before.typing.length && state.open && this.#language) this.#announce(this.#typing(state.typing));
    if (state.unread !== before?.unread) this.#retitle(state.unread);
    this.#draw();
  }

  /** Who types, in words; it is read out once, not again while it goes on. */
  #typing(names: string[]): string {
    const settings = this.#session.state.settings;
    return this.#language!.t('typing', { name: names.filter(Boolean).join(', ') || settings?.botName || settings?.name || '' });
  }

  /** Reads a change of the connection out, but not the first connection. */
  #tell(state: State, before: State): void {
    const c = state.connection;
    if (c === 'offline' || c === 'unavailable' || c === 'reconnecting') this.#announce(this.#language.t(c));
    else if (c === 'online' && before.connection !== 'connecting' && before.connection !== 'idle') this.#announce(this.#language.t('online'));
  }

  #arrived(m: Message): void {
    const { state } = this.#session;
    if (!this.#language) return;
    const seen = state.open && document.visibilityState === 'visible' && document.hasFocus();
    const notice = noticeText(m, this.#language);
    if (state.open) this.#announce(notice || this.#language.t('saidBy', { name: m.nameOfSender, text: summary(m, (kind) => this.#language.t(kind)) }));
    if (state.sound && !seen) void chime(this.#host.key, m.id).catch(() => {});
  }

  readonly #announce = (text: string): void => {
    this.#spoken = { text, count: this.#spoken.count + 1 };
    this.#draw();
  };

  /** The number of unread messages stands in the page's title. */
  #retitle(unread: number): void {
    this.#untitle();
    this.#host.launcher.title = unread && this.#language ? this.#language.n('unread', unread) : '';
    if (!unread || !this.#language) return;
    const own = document.title;
    const shown = this.#language.t('titleUnread', { n: this.#language.number(unread), title: own });
    document.title = shown;
    this.#title = { shown, own };
  }

  #untitle(): void {
    if (this.#title && document.title === this.#title.shown) document.title = this.#title.own;
    this.#title = undefined;
  }

  readonly #seen = (): void => {
    if (document.visibilityState === 'visible') this.#draw();
  };

  /** On phones the keyboard covers the page: the panel takes what is left. Who zooms in sees a part of it, as of any page. */
  readonly #viewport = (): void => {
    const v = window.visualViewport;
    if (!v) return;
    const zoomed = v.scale > 1.01;
    this.#sizes.set('--height', zoomed ? '100%' : `${v.height}px`);
    this.#sizes.set('--top', zoomed ? '0' : `${v.offsetTop}px`);
  };

  #draw(): void {
    if (this.#frame) return;
    this.#frame = requestAnimationFrame(this.#drawNow);
    this.#late = setTimeout(this.#drawNow, 100); // a page that nobody sees has no frames, but its state goes on
  }

  readonly #drawNow = (): void => {
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#late);
    this.#frame = 0;
    if (this.#ended || !this.#language) return;
    render(
      <Panel
        host={this.#host}
        session={this.#session}
        state={this.#session.state}
        language={this.#language}
        extras={this.#extras}
        announce={this.#announce}
        close={this.close}
        sheet={this.#sizes}
        now={Math.floor(Date.now() / MINUTE) * MINUTE}
        spoken={this.#spoken}
        transcript={this.#transcript}
      />,
      this.#place,
    );
  };
}
