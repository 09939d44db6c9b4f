// Scenarios of the chat widget: the life of the widget in its page, navigation and the npm package. widget.mjs runs one exported function.

import assert from 'node:assert/strict';
import { build } from 'esbuild';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually, unique, write } from '../page.mjs';
import { composer, cors, launcher, messageWith, register, rows, startSite, tagOf } from './shared.mjs';

/** Tests each event, and each function of the JavaScript API that no other scenario uses. */
async function api(page, config) {
  await page.evaluate(() => {
    window.seen = [];
    window.once = () => seen.push('once');
    for (const e of ['open', 'close', 'message', 'unread', 'registered', 'error', 'state']) Parley.on(e, (detail) => seen.push([e, detail]));
    Parley.on('open', once);
    Parley.on('open', () => { throw new Error('an error of the site'); });
  });
  const seen = (event) => page.evaluate((event) => window.seen.filter((s) => s[0] === event).map((s) => s[1]), event);
  assert.equal(await page.evaluate(async () => (await Parley.ready()) === Parley), true);
  assert.equal(await page.evaluate(() => new Promise((done) => Parley.push((parley) => done(parley === Parley)))), true);
  await page.evaluate(() => Parley.toggle());
  await page.getByLabel('First name').waitFor();
  await page.evaluate(() => (Parley.off('open', once), Parley.toggle(), Parley.toggle(), Parley.close(), Parley.close()));
  assert.deepEqual(await page.evaluate(() => seen.filter((s) => s === 'once').length), 1, 'a removed listener receives no events');
  assert.deepEqual([(await seen('open')).length, (await seen('close')).length], [2, 2], 'each change emits one event');
  await page.route(`${config.base}/register`, (route) => route.fulfill({ status: 503, headers: cors, json: { statusCode: 503, code: 'UNAVAILABLE', message: 'Try later.' } }));
  await page.evaluate(() => (Parley.identify({ userId: 'api', email: 'api@example.com', firstName: 'Ada' }), Parley.open()));
  await eventually('the error event is emitted', async () => assert.deepEqual(await seen('error'), [{ code: 'UNAVAILABLE', status: 503, message: 'Try later.' }]));
  await page.unroute(`${config.base}/register`);
  await page.evaluate((userId) => Parley.identify({ userId, email: `${userId}@example.com`, firstName: 'Ada' }), `api-${unique()}`);
  await rows(page).first().waitFor();
  assert.match((await seen('registered'))[0].chatUserId, /^[0-9a-f-]{36}$/);
  await write(page, 'thanks');
  await messageWith(page, 'You are welcome.').waitFor();
  await eventually('a message event is emitted for both messages', async () => assert.deepEqual((await seen('message')).map((m) => `${m.type} ${m.isFromSupport} ${m.data.text}`).sort(), ['TEXT false thanks', 'TEXT true You are welcome.']));
  await page.evaluate(() => Parley.close());
  await page.evaluate(() => Parley.identify({ userId: 'somebody else', email: 'else@example.com', firstName: 'Eve' })); // ends the session of the first visitor
  await eventually('the second visitor is registered', async () => assert.equal(new Set((await seen('registered')).map((r) => r.chatUserId)).size, 2));
  await page.evaluate(() => (Parley.open(), Parley.logout()));
  await eventually('nothing is stored after logout', async () => assert.deepEqual(await page.evaluate(() => Object.keys(localStorage)), []));
  const states = await seen('state');
  for (const state of ['form', 'connecting', 'online']) assert.ok(states.includes(state), `${state} in ${states}`);
  assert.deepEqual(page.errors, []);
  await page.context().close();
}

/** The life cycle of the widget in its page. */
export async function life({ config, open, report }) {
  const site = await startSite();
  const { url } = site;
  site.serve(`<!doctype html><html lang="en"><title>Site</title>${tagOf(config)}<body></body>`);
  await api(await open({ url }), config);
  const tag = (more) => tagOf(config, more);
  const serve = async (_, html) => site.serve(html);
  const hostile = '<style>*{all:unset!important;display:block!important;color:red!important;font-size:40px!important} div,button,:host{position:static!important;display:none!important} html{font-size:3px}</style>';

  let page = await open({ url, before: (p) => serve(p, `<!doctype html><html lang="de"><title>Site</title>${hostile}<script>window.seen=[];Parley=[['on','open',()=>seen.push('open')],['on','state',s=>seen.push(s)],['on','unread',n=>seen.push(n)],['open']]</script>${tag()}<body><h1>Site</h1></body>`) });
  await page.getByLabel('Vorname').waitFor(); // the command queue opened it, in the language of the page
  assert.ok((await page.evaluate(() => seen)).includes('open'));
  const style = await page.locator('.p').evaluate((e) => ({ width: e.offsetWidth, position: getComputedStyle(e).position, size: getComputedStyle(e).fontSize }));
  assert.deepEqual(style, { width: 400, position: 'fixed', size: '15px' }, "the site's styles do not reach the widget");
  await page.evaluate(() => Parley.setLanguage('fa'));
  await page.locator('.p[dir=rtl]').waitFor();
  await page.evaluate(() => (Parley.setLanguage('en'), Parley.setTheme('dark')));
  await page.locator('.p[data-theme=dark][dir=ltr]').waitFor();
  await page.evaluate(() => Parley.hide());
  await eventually('the launcher is hidden', async () => assert.equal(await page.getByRole('button', { name: 'Open chat' }).count(), 0));
  await page.evaluate(() => (Parley.show(), Parley.open()));
  await page.getByLabel('First name').fill('kept');

  // Turbo replaces the body and runs its scripts again.
  await page.evaluate((html) => {
    const body = document.createElement('body');
    body.innerHTML = '<h1>Next page</h1>';
    document.documentElement.replaceChild(body, document.body);
    const script = document.createElement('script');
    script.src = html.src;
    script.dataset.appId = html.appId;
    body.append(script);
    return new Promise((done) => { script.onload = done; });
  }, { src: `${config.base}/widget.js`, appId: config.appId });
  await eventually('the widget survives the replacement of the body', async () => assert.equal(await page.getByLabel('First name').inputValue(), 'kept'));
  assert.equal(await page.evaluate(() => [...document.body.children].filter((e) => e.shadowRoot).length), 1, 'there is one widget');

  // A visitor identified by the site sees no form. The widget also works with blocked storage.
  await page.context().close();
  const user = `user-${unique()}`;
  page = await open({
    url,
    before: async (p) => {
      await serve(p, `<!doctype html><html lang="en"><title>Site</title>${tag('data-position="left"')}<body><button data-parley-open>Help</button></body>`);
      await p.addInitScript(() => {
        for (const name of ['localStorage', 'sessionStorage', 'indexedDB']) Object.defineProperty(window, name, { get() { throw new DOMException('blocked', 'SecurityError'); } });
      });
    },
  });
  await page.evaluate((userId) => Parley.identify({ userId, firstName: 'Ada', email: `${userId}@example.com` }), user);
  await page.getByRole('button', { name: 'Help' }).click();
  await messageWith(page, 'Hello, I am Polly, the demo bot.').waitFor();
  await page.getByText('Your browser stores nothing').waitFor();
  await write(page, 'thanks');
  await messageWith(page, 'You are welcome.').waitFor();
  assert.ok((await page.locator('.p').boundingBox()).x < 50);
  await page.evaluate(() => Parley.logout());
  await page.getByLabel('First name').waitFor();
  assert.deepEqual(page.errors, []);
  await page.context().close();

  // Two widgets, each with its own application.
  page = await open({ url, before: async (p) => {
    await serve(p, `<!doctype html><html lang="en"><title>Site</title>${tag()}${tag('data-position="left"').replace(config.appId, config.otherAppId)}<body></body>`);
  } });
  await page.waitForFunction(() => Object.keys(Parley.widgets).length === 2);
  await page.evaluate((id) => Parley.widgets[id].open(), config.otherAppId);
  await page.getByLabel('Phone').waitFor();
  await page.evaluate((id) => (Parley.widgets[id].close(), Parley.widgets[id].destroy()), config.otherAppId);
  assert.equal(await page.evaluate(() => [Object.keys(Parley.widgets).length, [...document.body.children].filter((e) => e.shadowRoot).length].join()), '1,1');
  await page.context().close();

  // Load and destroy the widget a hundred times.
  page = await open({ url, ready: false, before: async (p) => {
    await serve(p, '<!doctype html><html lang="en"><title>Site</title><body></body>');
    await p.addInitScript(() => {
      window.held = { listeners: new Set(), timers: new Set() };
      let n = 0;
      const keys = new WeakMap();
      const key = (type, f) => `${type}${keys.get(f) ?? (keys.set(f, ++n), n)}`;
      for (const target of [window, document, window.visualViewport]) {
        const { addEventListener, removeEventListener } = target;
        target.addEventListener = (type, f, ...more) => { held.listeners.add(key(type, f)); return addEventListener.call(target, type, f, ...more); };
        target.removeEventListener = (type, f, ...more) => { held.listeners.delete(key(type, f)); return removeEventListener.call(target, type, f, ...more); };
      }
      for (const name of ['Interval', 'Timeout']) {
        const set = window[`set${name}`];
        const clear = window[`clear${name}`];
        window[`set${name}`] = (f, ...more) => {
          const id = set(() => { if (name === 'Timeout') held.timers.delete(id); f(); }, ...more);
          held.timers.add(id);
          return id;
        };
        window[`clear${name}`] = (id) => { held.timers.delete(id); clear(id); };
      }
    });
  } });
  const client = await page.context().newCDPSession(page);
  const measure = async () => {
    await client.send('HeapProfiler.collectGarbage');
    const { nodes, jsEventListeners } = await client.send('Memory.getDOMCounters');
    return { nodes, jsEventListeners, ...(await page.evaluate(() => ({ listeners: held.listeners.size, timers: held.timers.size, globals: Object.keys(window).length, elements: document.querySelectorAll('*').length }))) };
  };
  const cycles = (count) => page.evaluate(async ({ count, base, appId }) => {
    for (let i = 0; i < count; i++) {
      const script = document.createElement('script');
      script.src = `${base}/widget.js`;
      script.dataset.appId = appId;
      const opened = new Promise((done) => { window.Parley = [['on', 'open', done], ['open']]; });
      document.head.append(script);
      await opened;
      await new Promise((done) => requestAnimationFrame(done));
      Parley.destroy();
      script.remove();
    }
  }, { count, base: config.base, appId: config.appId });
  await cycles(5);
  const before = await measure();
  await cycles(100);
  const after = await eventually('all timers have ended', async () => {
    const m = await measure();
    assert.equal(m.timers, 0);
    return m;
  });
  report(`widget after 100 cycles: ${JSON.stringify(after)}`);
  assert.deepEqual({ ...after, nodes: 0, jsEventListeners: 0 }, { ...before, timers: 0, nodes: 0, jsEventListeners: 0 });
  assert.ok(after.nodes <= before.nodes + 50 && after.jsEventListeners <= before.jsEventListeners + 5, `nodes and listeners are released: ${JSON.stringify([before, after])}`);
  assert.equal(await page.evaluate(() => 'Parley' in window), false);
  site.close();
  assert.deepEqual(page.errors, []);
}

/** Navigation without a page load: a replaced body and view transitions. */
export async function navigation({ config, open, report }) {
  const site = await startSite();
  site.serve(`<!doctype html><html lang="en"><title>Site</title>${tagOf(config)}<body><main>First</main></body>`);
  const page = await open({ url: site.url });
  await page.evaluate(() => { window.seen = []; for (const e of ['open', 'close']) Parley.on(e, () => seen.push(e)); });
  await register(page);
  await write(page, 'before');
  await messageWith(page, 'You wrote “before”').waitFor();
  const visit = (name, transition) => page.evaluate(async ({ name, transition, src, appId }) => {
    const swap = () => {
      const body = document.createElement('body');
      body.innerHTML = `<main>${name}</main>`;
      const script = document.createElement('script'); // a script in the body runs on each visit
      script.src = src;
      script.dataset.appId = appId;
      body.append(script);
      document.documentElement.replaceChild(body, document.body);
      history.pushState({}, '', name);
      return new Promise((done) => { script.onload = done; });
    };
    if (!transition) return swap();
    const running = document.startViewTransition(swap);
    await running.ready;
    await running.finished;
  }, { name, transition, src: `${config.base}/widget.js`, appId: config.appId });
  await composer(page).fill('half a sen');
  for (const [name, transition] of [['second', false], ['third', true], ['fourth', true]]) {
    await visit(name, transition);
    await page.getByRole('main').getByText(name).waitFor();
    await eventually('there is one widget', async () => assert.equal(await page.evaluate(() => [...document.body.children].filter((e) => e.shadowRoot).length), 1));
    assert.equal(await composer(page).inputValue(), 'half a sen', `the composer keeps its text after ${name}`);
    await messageWith(page, 'You wrote “before”').waitFor();
  }
  await composer(page).press('End');
  await page.keyboard.type('tence');
  await composer(page).press('Enter');
  await messageWith(page, 'You wrote “half a sentence”').waitFor();
  assert.deepEqual(await page.evaluate(() => [seen, Object.keys(Parley.widgets).length]), [['open'], 1]);
  assert.deepEqual(page.errors, []);
  site.close();
  report('widget navigation: a new body and view transitions');
}

/** The npm package: load() and the React component, on a page with trusted types. */
export async function packaged({ config, open, report }) {
  const folder = fileURLToPath(new URL('../../../../web/widget/package', import.meta.url));
  const source = `
    import { createElement, StrictMode, useState } from 'react';
    import { createRoot } from 'react-dom/client';
    import { load } from './index.js';
    import { ParleyWidget } from './react.js';
    const target = ${JSON.stringify({ baseUrl: config.base, appId: config.appId })};
    window.begin = () => load({ ...target, position: 'left', theme: 'dark', color: '#123456' });
    let root;
    const seen = (window.seen = []);
    const App = ({ initial }) => {
      const [props, setProps] = useState(initial);
      window.change = (more) => setProps({ ...props, ...more });
      return createElement(ParleyWidget, { ...target, ...props, onLoad: (parley) => { window.parley = parley; parley.on('state', (s) => seen.push(s)); } });
    };
    window.mount = (props) => { root = createRoot(document.querySelector('main')); root.render(createElement(StrictMode, null, createElement(App, { initial: props }))); };
    window.unmount = () => root.unmount();
  `;
  const { outputFiles: [{ text: script }] } = await build({ stdin: { contents: source, resolveDir: folder }, bundle: true, format: 'iife', write: false, logLevel: 'silent', define: { 'process.env.NODE_ENV': '"development"' } });
  const site = await startSite();
  site.serve(`<!doctype html><html lang="en"><title>Site</title>
    <meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'nonce-n' 'strict-dynamic'; connect-src ${config.base} ${config.base.replace('http', 'ws')}; img-src ${config.base}; require-trusted-types-for 'script'; trusted-types parley">
    <body><main></main><script nonce="n">${script.replaceAll('</script', '<\\/script')}</script></body>`);
  const page = await open({ url: site.url, ready: false });
  const elements = () => page.evaluate(() => [...document.body.children].filter((e) => e.shadowRoot).length);

  await page.evaluate(() => {
    window.parley = begin();
    parley.on('open', () => seen.push('open'));
    parley.open(); // queued until the widget is loaded
    return parley.ready();
  });
  await page.locator('.p[data-theme=dark]').waitFor();
  await page.getByLabel('First name').waitFor();
  assert.ok((await page.locator('.p').boundingBox()).x < 50);
  assert.deepEqual(await page.evaluate(() => seen), ['open']);
  await page.evaluate(() => parley.destroy());
  assert.equal(await elements(), 0);
  await page.evaluate(() => { const p = begin(); p.open(); p.destroy(); return new Promise((done) => setTimeout(done, 300)); });
  assert.equal(await elements(), 0, 'a widget destroyed before it is loaded does not appear');

  // StrictMode mounts, unmounts and mounts again.
  await page.evaluate(() => mount({ lang: 'de' }));
  await eventually('there is one widget after StrictMode has mounted twice', async () => assert.equal(await elements(), 1));
  await page.evaluate(() => parley.open());
  await page.getByLabel('Vorname').waitFor();
  await page.evaluate(() => change({ lang: 'en', theme: 'dark' }));
  await page.getByLabel('First name').waitFor();
  await page.locator('.p[data-theme=dark]').waitFor();
  const user = `react-${unique()}`;
  await page.evaluate((userId) => change({ identity: { userId, firstName: 'Ada', email: `${userId}@example.com` } }), user);
  await messageWith(page, 'Hello, I am Polly, the demo bot.').waitFor();
  await page.evaluate(() => change({ identity: undefined })); // logged out
  await page.getByLabel('First name').waitFor();
  await page.evaluate(() => unmount());
  await eventually('unmounting the component removes the widget', async () => assert.equal(await elements(), 0));
  assert.equal(await page.evaluate(() => 'Parley' in window), false);
  assert.deepEqual([await page.evaluate(() => window.violations), page.errors], [[], []]);
  site.close();
  report('widget package: load() and React, policy violations: 0');
}
