// The loader: only the launcher and the API object. It loads the chat when the visitor opens it, or when the stored
// session has unread messages or pending work. It writes nothing to storage.
//
// Each script tag evaluates this file anew: the variables of the module are those of one widget.

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
const doc = document;
const script = doc.currentScript as HTMLScriptElement | null; // null if the file was not loaded by a tag
const nonce = script?.nonce;
const data = script?.dataset ?? {};
const appId = data.appId ?? '';
const base = (script?.src ?? location.href).replace(/widget(\/loader-[^/]*)?\.js([?#].*)?$/, '');
const before = win.Parley;
const registry: Record<string, Api> = (before as { widgets?: Record<string, Api> } | undefined)?.widgets ?? {};

// The state of the widget

let listeners: [EventName, Listener][] = [];
let chat: Chat | undefined;
let loading: Promise<void> | undefined;
let failures = 0;
let destroyed = false;
let unread = 0;

// The launcher, in a shadow root

const element = doc.createElement('div');
const root = element.attachShadow({ mode: 'open' });
const launcher = doc.createElement('button');
const badge = doc.createElement('span');
const baseStyles = new CSSStyleSheet();
const colourStyles = new CSSStyleSheet();

function buildLauncher() {
  baseStyles.replaceSync(styles);
  root.adoptedStyleSheets = [baseStyles, colourStyles];
  launcher.type = 'button';
  launcher.hidden = data.launcher === 'none';
  launcher.onpointerdown = load; // start loading before the click event
  launcher.onclick = toggle;
  launcher.append(badge);
  root.append(launcher);
}

const language = () => host.language.slice(0, 2).toLowerCase();

const host: Host = {
  base,
  appId,
  element,
  root,
  launcher,
  key: `parley.${appId}`,
  mediaOrigins: `${new URL(base).origin} ${data.mediaOrigins ?? ''}`.split(' '),
  language: data.lang || doc.documentElement.lang || navigator.language,
  theme: (data.theme as Theme) || 'auto',
  websocket: data.websocket ? data.websocket !== 'off' : !nonce,
  emit(event, detail) {
    for (const [name, f] of listeners) {
      try {
        if (name === event) f(detail);
      } catch (err) {
        console.error(err); // an exception in a site's listener must not break the chat
      }
    }
  },
  paint(back, front) {
    const hex = (colour: unknown) => (/^#\w{3,8}$/.test(colour as string) ? colour : 'initial');
    colourStyles.replaceSync(
      `:host{--back:${hex(back)};--front:${hex(front)};view-transition-name:parley-${CSS.escape(appId)}}`,
    );
  },
  refresh() {
    const rtl = /ar|fa|he/.test(language());
    const open = !!chat?.isOpen;
    badge.textContent = unread > 99 ? '99+' : String(unread || '');
    launcher.ariaLabel =
      (open && host.closeLabel) || (__LABELS__[language()] ?? __LABELS__.en) + (unread ? `: ${badge.textContent}` : '');
    launcher.ariaExpanded = String(open);
    element.dir = rtl ? 'rtl' : 'ltr';
    element.lang = host.language;
    element.className = data.position || (rtl ? 'left' : 'right');
  },
  preload(file, integrity) {
    const link = Object.assign(doc.createElement('link'), {
      rel: 'modulepreload',
      crossOrigin: '',
      integrity,
      nonce,
      href: base + file,
    });
    doc.head.append(link);
    return link;
  },
  badge(n) {
    if (n !== unread) host.emit('unread', n);
    unread = n;
    host.refresh();
  },
};

function stored(): Stored {
  try {
    return (JSON.parse(localStorage.getItem(host.key)!) as Stored) ?? {};
  } catch {
    return {}; // storage blocked, or not JSON
  }
}

// Loading the chat

async function fetchChat() {
  launcher.className = 'busy';
  // Browsers may cache a failed module by its URL, so a retry needs another URL.
  const file = __CHAT__ + (failures ? `?${failures}` : '');
  // Request everything that the first screen needs in parallel; the chat would request the rest only after it is
  // loaded.
  const links = [host.preload(file, __INTEGRITY__)];
  if (__LABELS__[language()]) links.push(host.preload(`widget/${language()}-${__LANGUAGES__}.js`, ''));
  host.settingsAnswer = fetch(`${base}settings/${encodeURIComponent(appId)}`, { credentials: 'omit' }).catch(
    () => undefined,
  );
  try {
    const module = (await import(base + file)) as { mount(host: Host): Promise<Chat> };
    if (destroyed) return;
    chat = await module.mount(host);
    if (destroyed) chat.destroy();
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

/** Loads the chat, then calls act. If loading fails, `error` is already emitted. */
async function whenLoaded(act: (chat: Chat) => void) {
  await load();
  if (chat && !destroyed) act(chat);
}

const open = () => void whenLoaded((c) => c.open());
const toggle = () => (chat?.isOpen ? chat.close() : open());

// The API of the page

const api: Api = {
  open,
  toggle,
  show() {
    launcher.hidden = false;
  },
  hide() {
    launcher.hidden = true;
    chat?.close();
  },
  on(event: EventName, f: Listener) {
    listeners = [...listeners, [event, f]];
  },
  off(event: EventName, f?: Listener) {
    listeners = listeners.filter(([name, known]) => name !== event || (f && known !== f));
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
    destroyed = true;
    chat?.destroy();
    removeEventListener('storage', onStorage);
    doc.removeEventListener('click', onClick);
    observer.disconnect();
    listeners = [];
    element.remove();
    delete registry[appId];
    const [next] = Object.values(registry);
    if (next) win.Parley = next;
    else delete win.Parley;
  },
  widgets: registry,
};

/** API methods forwarded to the chat. The value is the Host field that stores the argument, if any. */
const forwarded = {
  identify: 'identity',
  setLanguage: 'language',
  setTheme: 'theme',
  logout: '',
  forget: '',
  close: '',
} as const;

function forward(name: keyof typeof forwarded, value: unknown) {
  const hostField = forwarded[name];
  if (hostField) (host as unknown as Record<string, unknown>)[hostField] = value;
  else if (name !== 'close') host.identity = undefined;
  host.refresh();
  // logout and forget end a stored session even if the chat was not opened on this page.
  if (loading || (!hostField && name !== 'close' && stored().token)) void whenLoaded((c) => c[name](value as Identity));
}

function publish() {
  registry[appId] = api;
  if (before && !Array.isArray(before)) return;
  win.Parley = api;
  before?.forEach(api.push as (command: Command) => void);
}

// The page

function onStorage(e: StorageEvent) {
  if (e.key === host.key && !chat) host.badge(stored().unreadCount ?? 0);
}

/** A click on an element with data-parley-open, the site's own launcher. */
function onClick(e: Event) {
  const own = (e.target as Element).closest?.('[data-parley-open]');
  if (own && [appId, ''].includes(own.getAttribute('data-parley-open')!)) toggle();
}

/** Attaches the element, again after client-side navigation, such as Turbo's, has replaced the body. */
function attach() {
  if (destroyed || element.isConnected || !doc.body) return;
  doc.body.append(element);
  observer.observe(doc.documentElement, { childList: true });
  observer.observe(doc.body, { childList: true });
  chat?.reattached();
}

const observer = new MutationObserver(attach);

function mount() {
  for (const name of Object.keys(forwarded) as (keyof typeof forwarded)[])
    api[name] = (value?: unknown) => forward(name, value);
  buildLauncher();
  addEventListener('storage', onStorage);
  doc.addEventListener('click', onClick);
  publish();
  const s = stored();
  unread = s.unreadCount ?? 0;
  host.paint(s.colours?.[0] ?? data.color!, s.colours?.[1]);
  host.refresh();
  attach();
  if (!doc.body) doc.addEventListener('DOMContentLoaded', attach, { once: true });
  if (s.token && (s.unreadCount || s.pending)) void load();
}

if (appId && !registry[appId]) mount(); // Turbo evaluates the script tag again on each visit
