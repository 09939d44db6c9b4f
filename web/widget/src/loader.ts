// The loader: the launcher, the API object and nothing else. It asks for the chat only when the visitor opens it, or when a
// stored session has something for the visitor. It stores nothing.

import type { Chat, EventName, Host, Identity, Stored, Theme } from './host.js';
import styles from './loader.css';

declare const __CHAT__: string;
declare const __INTEGRITY__: string;
declare const __LANGUAGES__: string;
declare const __LABELS__: Record<string, string>;

type Listener = (detail: unknown) => void;
type Api = Record<string, unknown>;
type Command = [name: string, ...args: unknown[]] | ((api: Api) => void);

const win = globalThis as unknown as { Parley?: (Api & { widgets?: Record<string, Api> }) | Command[] };
const doc = globalThis.document;

/** What is called before the chat is there, and what the loader keeps of it. */
const forwarded = { identify: 'identity', setLanguage: 'language', setTheme: 'theme', logout: '', forget: '', close: '' } as const;

function mount(script: HTMLScriptElement) {
  const data = script.dataset;
  const appId = data.appId ?? '';
  const base = script.src.replace(/widget(\/loader-[^/]*)?\.js([?#].*)?$/, '');
  const before = win.Parley;
  const registry: Record<string, Api> = (before && !Array.isArray(before) && before.widgets) || {};
  if (!appId || registry[appId]) return; // Turbo runs the tag again on each visit

  const element = doc.createElement('div');
  const root = element.attachShadow({ mode: 'open' });
  const [look, colours] = (root.adoptedStyleSheets = [new CSSStyleSheet(), new CSSStyleSheet()]);
  look!.replaceSync(styles);
  const launcher = doc.createElement('button');
  launcher.type = 'button';
  const badge = doc.createElement('span');
  launcher.append(badge);
  root.append(launcher);

  const listeners: [EventName, Listener][] = [];
  let chat: Chat | undefined;
  let loading: Promise<void> | undefined;
  let failures = 0;
  let gone = false;
  let unread = 0;

  const host: Host = {
    base, appId, element, root, launcher,
    key: `parley.${appId}`,
    mediaOrigins: [new URL(base).origin, ...(data.mediaOrigins ?? '').split(' ')],
    language: data.lang || doc.documentElement.lang || navigator.language,
    theme: (data.theme as Theme) || 'auto',
    websocket: data.websocket ? data.websocket !== 'off' : !script.nonce,
    emit(event, detail) {
      for (const [name, f] of [...listeners]) {
        try {
          if (name === event) f(detail);
        } catch (err) {
          console.error(err); // the site's own fault does not stop the chat
        }
      }
    },
    paint(back, front) {
      const hex = (colour: unknown) => (/^#\w{3,8}$/.test(colour as string) ? colour : 'initial');
      colours!.replaceSync(`:host{--back:${hex(back)};--front:${hex(front)};view-transition-name:parley-${CSS.escape(appId)}}`);
    },
    dress() {
      const rtl = /ar|fa|he/.test(language());
      const open = !!chat?.isOpen;
      badge.textContent = unread ? (unread > 99 ? '99+' : String(unread)) : '';
      launcher.ariaLabel = (open && host.closeLabel) || (__LABELS__[language()] ?? __LABELS__.en) + (unread ? `: ${badge.textContent}` : '');
      launcher.ariaExpanded = String(open);
      element.dir = rtl ? 'rtl' : 'ltr';
      element.lang = host.language;
      element.className = data.position || (rtl ? 'left' : 'right');
    },
    preload(file, integrity) {
      const link = Object.assign(doc.createElement('link'), { rel: 'modulepreload', crossOrigin: '', integrity, nonce: script.nonce, href: base + file });
      doc.head.append(link);
      return link;
    },
    badge(n) {
      if (n !== unread) host.emit('unread', n);
      unread = n;
      host.dress();
    },
  };

  const stored = (): Stored => {
    try {
      return (JSON.parse(localStorage.getItem(host.key)!) as Stored) ?? {};
    } catch {
      return {}; // blocked, or not ours
    }
  };

  const language = () => host.language.slice(0, 2).toLowerCase();

  async function fetchChat() {
    launcher.className = 'busy';
    // A browser may remember that a module failed, by its address.
    const file = __CHAT__ + (failures ? `?${failures}` : '');
    // All that the first screen needs, at once: the chat would ask for the others only when it is there.
    const links = [host.preload(file, __INTEGRITY__)];
    if (__LABELS__[language()]) links.push(host.preload(`widget/${language()}-${__LANGUAGES__}.js`, ''));
    host.settingsAnswer = fetch(`${base}settings/${encodeURIComponent(appId)}`, { credentials: 'omit' }).catch(() => undefined);
    try {
      const module = (await import(base + file)) as { mount(host: Host): Promise<Chat> };
      if (gone) return;
      chat = await module.mount(host);
      if (gone) chat.destroy();
    } catch (err) {
      loading = undefined;
      failures++;
      badge.textContent = '!';
      host.emit('error', { code: 'LOAD_FAILED', message: String(err) });
    }
    launcher.className = '';
    links.forEach((link) => link.remove());
  }

  const load = () => (loading ??= fetchChat());
  /** Does it when the chat is loaded; a failure has been told. */
  const later = async (act: (chat: Chat) => void) => {
    await load();
    if (chat && !gone) act(chat);
  };

  const open = () => void later((c) => c.open());
  const toggle = () => (chat?.isOpen ? chat.close() : open());

  const api: Api = {
    open, toggle,
    show() {
      launcher.hidden = false;
    },
    hide() {
      launcher.hidden = true;
      chat?.close();
    },
    on(event: EventName, f: Listener) {
      listeners.push([event, f]);
    },
    off(event: EventName, f?: Listener) {
      for (let i = listeners.length; i--; ) if (listeners[i]![0] === event && (!f || listeners[i]![1] === f)) listeners.splice(i, 1);
    },
    async ready(f?: (api: Api) => void) {
      f?.(api);
      return api;
    },
    push(command: Command) {
      if (typeof command === 'function') command(api);
      else (api[command[0]] as (...args: unknown[]) => void)?.(...command.slice(1));
    },
    destroy() {
      gone = true;
      chat?.destroy();
      removeEventListener('storage', onStorage);
      doc.removeEventListener('click', onClick);
      watch.disconnect();
      listeners.length = 0;
      element.remove();
      delete registry[appId];
      const [next] = Object.values(registry);
      if (next) win.Parley = next;
      else delete win.Parley;
    },
    widgets: registry,
  };
  for (const name of Object.keys(forwarded) as (keyof typeof forwarded)[]) {
    api[name] = (value?: unknown) => {
      const kept = forwarded[name];
      if (kept) (host as unknown as Record<string, unknown>)[kept] = value;
      else if (name !== 'close') host.identity = undefined;
      host.dress();
      // A session that is stored ends, even if nobody has opened the chat on this page.
      if (loading || (!kept && name !== 'close' && stored().t)) void later((c) => c[name](value as Identity));
    };
  }

  const onStorage = (e: StorageEvent) => {
    if (e.key === host.key && !chat) host.badge(stored().n ?? 0);
  };
  /** A site's own launcher: any element with data-parley-open. */
  const onClick = (e: Event) => {
    const own = (e.target as Element).closest?.('[data-parley-open]');
    if (own && [appId, ''].includes(own.getAttribute('data-parley-open')!)) toggle();
  };
  /** Pages that change their body without a load, such as those of Turbo, take the widget's element with it. */
  const attach = () => {
    if (gone || element.isConnected || !doc.body) return;
    doc.body.append(element);
    watch.observe(doc.documentElement, { childList: true });
    watch.observe(doc.body, { childList: true });
    chat?.reattached();
  };
  const watch = new MutationObserver(attach);

  launcher.onpointerdown = load; // the click follows
  launcher.onclick = toggle;
  launcher.hidden = data.launcher === 'none';
  addEventListener('storage', onStorage);
  doc.addEventListener('click', onClick);

  registry[appId] = api;
  if (!before || Array.isArray(before)) {
    win.Parley = api;
    before?.forEach(api.push as (command: Command) => void);
  }
  const s = stored();
  unread = s.n ?? 0;
  host.paint(s.c?.[0] ?? data.color!, s.c?.[1]);
  host.dress();
  attach();
  if (!doc.body) doc.addEventListener('DOMContentLoaded', attach, { once: true });
  if (s.t && (s.n || s.w)) void load();
}

if (typeof document !== 'undefined' && doc.currentScript) mount(doc.currentScript as HTMLScriptElement);
