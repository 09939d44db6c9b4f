// The page in the preview frame. It mounts the shipped widget (/widget.js) with the settings from the editor and answers its requests in
// place of the server. Nothing leaves the browser: no visitor is registered and no message is stored.

import type { Data } from '@parley/shared/message.js';
import type { PreviewState, PreviewStage } from './state.js';
import { handle, fakeToken, type Backend } from './server.js';
import { FakeRequest } from './socket.js';

interface Widget {
  open(): void;
  close(): void;
  destroy(): void;
  setTheme(theme: string): void;
  ready(): Promise<unknown>;
}

const KEY = 'parley.preview';
const win = window as unknown as { Parley?: Widget };

const backend: Backend = {
  settings: { id: 'preview', name: '', botName: '', widgetConfigs: {} },
  messages: [],
  push: (m) => FakeRequest.emit(m),
};

const realFetch = window.fetch.bind(window);
window.fetch = async (input, init = {}) => {
  const url = new URL(input instanceof Request ? input.url : String(input), location.href);
  if (url.origin !== location.origin || (/^\/widget[./]/.test(url.pathname) && !url.pathname.endsWith('/limits.json')))
    return realFetch(input, init);
  const body = typeof init.body === 'string' ? (JSON.parse(init.body) as Data) : {};
  const { status, json } = await handle(backend, init.method ?? 'GET', url.pathname, body);
  return new Response(status === 204 ? null : JSON.stringify(json), {
    status,
    headers: { 'Content-Type': 'application/json' },
  });
};
FakeRequest.backend = backend;
window.XMLHttpRequest = FakeRequest as unknown as typeof XMLHttpRequest;

// The widget takes the focus when it opens, and it opens again after every change: it must not take it from the editor.
const focus = HTMLElement.prototype.focus;
HTMLElement.prototype.focus = function (options) {
  if (document.hasFocus()) focus.call(this, options);
};

let shown = '';
let stage: PreviewStage | undefined;

async function mount(state: PreviewState) {
  const now = JSON.stringify([state.settings, state.mediaOrigin]);
  const fresh = now !== shown;
  const staged = state.stage !== stage;
  document.documentElement.dataset.theme = state.theme;
  if (!fresh && !staged) return win.Parley?.setTheme(state.theme);
  shown = now;
  stage = state.stage;
  backend.settings = state.settings;
  win.Parley?.destroy();
  FakeRequest.reset();
  // A stored session makes the widget show the chat; without a session it shows the form.
  if (state.stage === 'chat') {
    localStorage.setItem(KEY, JSON.stringify({ token: fakeToken() }));
    backend.messages = conversation(state);
  } else {
    localStorage.removeItem(KEY);
    backend.messages = greetings(state);
  }
  const script = document.createElement('script');
  script.src = '/widget.js';
  Object.assign(script.dataset, {
    appId: 'preview',
    theme: state.theme,
    lang: 'en',
    websocket: 'off',
    mediaOrigins: state.mediaOrigin,
  });
  await new Promise((done, failed) => {
    script.onload = done;
    script.onerror = failed;
    document.body.append(script);
  });
  script.remove();
  if (state.stage !== 'closed') win.Parley?.open();
}

function record(
  state: PreviewState,
  text: string,
  isFromSupport: boolean,
  minutesAgo: number,
  more: Partial<{ type: string; data: Data }> = {},
) {
  return {
    id: crypto.randomUUID(),
    createdAt: new Date(Date.now() - minutesAgo * 60_000).toISOString(),
    type: 'TEXT',
    data: { text } as Data,
    nameOfSender: isFromSupport ? state.settings.botName : 'Ada',
    isFromSupport,
    ...more,
  };
}

function greetings(state: PreviewState) {
  const messages = state.settings.widgetConfigs.greetingMessages;
  return (Array.isArray(messages) ? (messages as { content?: unknown }[]) : [])
    .filter((g) => typeof g.content === 'string' && g.content)
    .map((g, i) => record(state, g.content as string, true, 3 - i / 60));
}

/** A sample conversation. */
function conversation(state: PreviewState) {
  return [
    ...greetings(state),
    record(state, 'Where is my parcel?', false, 2),
    record(state, 'It leaves the depot today. When shall we deliver it?', true, 1, {
      type: 'MULTIPLE_CHOICE',
      data: {
        text: 'It leaves the depot today. When shall we deliver it?',
        choices: [
          { title: 'In the morning', payload: 'am' },
          { title: 'In the evening', payload: 'pm' },
        ],
      },
    }),
  ];
}

let queue = Promise.resolve();
addEventListener('message', (e: MessageEvent) => {
  if (e.source !== parent || e.origin !== location.origin || (e.data as { kind?: string } | null)?.kind !== 'preview')
    return;
  queue = queue.then(() => mount(e.data as PreviewState)).catch((err: unknown) => console.error(err)) as Promise<void>;
});
addEventListener('pagehide', () => localStorage.removeItem(KEY));
parent.postMessage({ kind: 'preview-ready' }, location.origin);
