// The page in the preview's frame: it mounts the shipped widget (/widget.js) and answers it in the server's place, with the settings that the
// editor sends. Nothing leaves the browser: no visitor is registered and no message is stored.

import type { Data } from '@parley/shared/message.js';
import type { PreviewOrder, PreviewStage } from './order.js';
import { answer, fakeToken, type World } from './server.js';
import { FakeRequest } from './socket.js';

interface Widget { open(): void; close(): void; destroy(): void; setTheme(theme: string): void; ready(): Promise<unknown> }

const KEY = 'parley.preview';
const win = window as unknown as { Parley?: Widget };

const world: World = { settings: { id: 'preview', name: '', botName: '', widgetConfigs: {} }, messages: [], push: (m) => FakeRequest.emit(m) };

const realFetch = window.fetch.bind(window);
window.fetch = async (input, init = {}) => {
  const url = new URL(input instanceof Request ? input.url : String(input), location.href);
  if (url.origin !== location.origin || /^\/widget[./]/.test(url.pathname) && !url.pathname.endsWith('/limits.json')) return realFetch(input, init);
  const body = typeof init.body === 'string' ? (JSON.parse(init.body) as Data) : {};
  const { status, json } = await answer(world, init.method ?? 'GET', url.pathname, body);
  return new Response(status === 204 ? null : JSON.stringify(json), { status, headers: { 'Content-Type': 'application/json' } });
};
FakeRequest.world = world;
window.XMLHttpRequest = FakeRequest as unknown as typeof XMLHttpRequest;

let shown = '';
let stage: PreviewStage | undefined;

async function mount(order: PreviewOrder) {
  const now = JSON.stringify([order.settings, order.mediaOrigin]);
  const fresh = now !== shown;
  const staged = order.stage !== stage;
  document.documentElement.dataset.theme = order.theme;
  if (!fresh && !staged) return win.Parley?.setTheme(order.theme);
  shown = now;
  stage = order.stage;
  world.settings = order.settings;
  win.Parley?.destroy();
  FakeRequest.reset();
  // The registered visitor is the widget's own stored session; without one it shows the form.
  if (order.stage === 'chat') {
    localStorage.setItem(KEY, JSON.stringify({ t: fakeToken() }));
    world.messages = conversation(order);
  } else {
    localStorage.removeItem(KEY);
    world.messages = greetings(order);
  }
  const script = document.createElement('script');
  script.src = '/widget.js';
  Object.assign(script.dataset, { appId: 'preview', theme: order.theme, lang: 'en', websocket: 'off', mediaOrigins: order.mediaOrigin });
  await new Promise((done, failed) => {
    script.onload = done;
    script.onerror = failed;
    document.body.append(script);
  });
  script.remove();
  if (order.stage !== 'closed') win.Parley?.open();
}

function record(order: PreviewOrder, text: string, isFromSupport: boolean, minutesAgo: number, more: Partial<{ type: string; data: Data }> = {}) {
  return {
    id: crypto.randomUUID(), createdAt: new Date(Date.now() - minutesAgo * 60_000).toISOString(), type: 'TEXT', data: { text } as Data, nameOfSender: isFromSupport ? order.settings.botName : 'Ada', isFromSupport, ...more,
  };
}

function greetings(order: PreviewOrder) {
  const said = order.settings.widgetConfigs.greetingMessages;
  return (Array.isArray(said) ? (said as { content?: unknown }[]) : []).filter((g) => typeof g.content === 'string' && g.content).map((g, i) => record(order, g.content as string, true, 3 - i / 60));
}

/** What a visitor would see after a few messages. */
function conversation(order: PreviewOrder) {
  return [
    ...greetings(order),
    record(order, 'Where is my parcel?', false, 2),
    record(order, 'It leaves the depot today. When shall we deliver it?', true, 1, { type: 'MULTIPLE_CHOICE', data: { text: 'It leaves the depot today. When shall we deliver it?', choices: [{ title: 'In the morning', payload: 'am' }, { title: 'In the evening', payload: 'pm' }] } }),
  ];
}

let queue = Promise.resolve();
addEventListener('message', (e: MessageEvent) => {
  if (e.source !== parent || e.origin !== location.origin || (e.data as { kind?: string } | null)?.kind !== 'preview') return;
  queue = queue.then(() => mount(e.data as PreviewOrder)).catch((err: unknown) => console.error(err)) as Promise<void>;
});
addEventListener('pagehide', () => localStorage.removeItem(KEY));
parent.postMessage({ kind: 'preview-ready' }, location.origin);
