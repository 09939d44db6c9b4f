// What a visitor does with the widget, and what must then be seen. Each exported function is one run of widget.mjs.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { build } from 'esbuild';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const require = createRequire(import.meta.url);
const axeSource = require.resolve('axe-core/axe.min.js');
const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==', 'base64');

/** A picture with something to see on it. */
const picture = readFileSync(fileURLToPath(new URL('../../processor/internal/bot/assets/parley.png', import.meta.url)));

const launcher = (page) => page.getByRole('button', { name: 'Open chat' });
const composer = (page) => page.getByLabel('Your message');
const rows = (page) => page.locator('[role=log] article[data-id]');
const ids = (page) => rows(page).evaluateAll((all) => all.map((e) => e.dataset.id));
const texts = (page, selector = '.row .words') => page.locator(`[role=log] ${selector}`).allTextContents();
const said = (page, text) => page.locator('[role=log]').getByText(text).first();
const unique = () => `${Date.now()}${Math.floor(Math.random() * 1e6)}`;

async function register(page, { email = `ada${unique()}@example.com` } = {}) {
  await launcher(page).click();
  await page.getByLabel('First name').fill('Ada');
  await page.getByLabel('Email').fill(email);
  await page.getByRole('button', { name: 'Start the chat' }).click();
  await rows(page).first().waitFor();
  return email;
}

async function write(page, text) {
  await composer(page).fill(text);
  await composer(page).press('Enter');
}

/** The company writes into the chat that the page shows. */
async function companyWrites(page) {
  execFileSync('sh', ['-c', await page.locator('#curl').textContent()]);
}

/** A site of our own: it answers every path with what `serve` was last given. */
async function ownSite() {
  let html = '';
  const server = createServer((_, answer) => answer.setHeader('Content-Type', 'text/html').end(html));
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return { url: `http://127.0.0.1:${server.address().port}/`, serve: (text) => { html = text; }, close: () => server.close() };
}

const tagOf = ({ base, appId }, more = '') => `<script async src="${base}/widget.js" data-app-id="${appId}" ${more}></script>`;
const sockets = (page) => page.asked.filter((u) => u.includes('/socket.io/')).length;

async function eventually(what, check) {
  const end = Date.now() + 30_000;
  for (;;) {
    try {
      return await check();
    } catch (err) {
      if (Date.now() > end) throw new Error(`${what}: ${err.message}`, { cause: err });
      await new Promise((done) => setTimeout(done, 50));
    }
  }
}

/** The whole session on a site with a strict policy. */
export async function flow({ config, open, say }) {
  const page = await open();
  const own = (url) => new URL(url).origin === new URL(config.base).origin;
  assert.deepEqual(page.asked.filter((u) => own(u) && !u.endsWith('favicon.svg')).map((u) => new URL(u).pathname), ['/widget.js'], 'before the first act only the loader is asked for');
  const stored = () => page.evaluate(async () => [Object.keys(localStorage), Object.keys(sessionStorage), (await indexedDB.databases()).map((d) => d.name), document.cookie]);
  const nothing = [[], [], [], ''];
  assert.deepEqual(await stored(), nothing, 'nothing is stored before the visitor acts');

  const start = Date.now();
  await launcher(page).click();
  await page.getByLabel('First name').waitFor();
  say(`widget opened: ${Date.now() - start} ms`);
  assert.equal(await page.evaluate(() => document.querySelector('body > div:last-of-type').shadowRoot.activeElement?.name), 'firstName', 'the focus goes to the first field');
  assert.deepEqual(await stored(), nothing, 'opening stores nothing either');

  const files = page.asked.filter(own).map((u) => new URL(u).pathname.replace(/(settings\/).*|-[0-9a-f]{8}/, '$1'));
  assert.deepEqual(files.filter((f) => /^\/(widget|settings)/.test(f)).sort(), ['/settings/', '/widget.js', '/widget/chat.js', '/widget/en.js'], 'what the first screen needs is asked for once');
  await page.getByLabel('Email').fill('no address');
  await page.getByRole('button', { name: 'Start the chat' }).click();
  await page.getByText('Please fill in this field.').waitFor();
  await page.getByLabel('First name').fill('Ada');
  await page.getByRole('button', { name: 'Start the chat' }).click();
  await page.getByText('Please enter a valid email address.').waitFor(); // the server's answer, at the field
  assert.equal(await page.getByLabel('Email').getAttribute('aria-invalid'), 'true');
  await page.getByLabel('Email').fill(`ada${unique()}@example.com`);
  await page.getByRole('button', { name: 'Start the chat' }).click();
  await said(page, 'Hello, I am Polly, the demo bot.').waitFor();

  const evil = '<img src=x onerror="document.title=\'owned\'"> https://example.com/a';
  await write(page, evil);
  await page.locator('.mine .words').filter({ hasText: 'onerror' }).waitFor();
  assert.equal(await page.locator('.mine .words a').first().getAttribute('rel'), 'noopener noreferrer nofollow');
  await write(page, 'menu');
  await page.getByRole('button', { name: 'Show me a picture' }).click();
  await page.locator('.t-image img').last().waitFor();
  await page.locator('.choice.taken').waitFor(); // the chosen answer is marked
  await page.getByRole('button', { name: /^Open picture/ }).last().click();
  await page.getByRole('dialog', { name: 'Two speech bubbles' }).waitFor();
  await page.keyboard.press('Escape');
  await write(page, 'cards');
  await page.locator('.t-carousel .card').first().waitFor();

  await page.route('**/widget/limits.json', (route) => route.fulfill({ json: { maxFileBytes: 1 << 20 }, headers: cors }));
  const [chooser] = await Promise.all([page.waitForEvent('filechooser'), page.getByRole('button', { name: 'Attach files' }).click()]);
  await chooser.setFiles([{ name: 'huge.bin', mimeType: 'application/octet-stream', buffer: Buffer.alloc((1 << 20) + 1) }, { name: 'dot.png', mimeType: 'image/png', buffer: png }]);
  await page.getByText('huge.bin is too large: at most 1 MB can be sent.').first().waitFor(); // before anything is sent
  await composer(page).fill('my dot');
  await page.getByRole('button', { name: 'Send', exact: true }).click();
  await page.locator('.mine.t-image').filter({ hasText: 'my dot' }).waitFor();
  await said(page, 'I got dot.png').waitFor();

  const lines = await page.locator('#curl').textContent();
  assert.match(execFileSync('sh', ['-c', lines], { encoding: 'utf8' }), /Message sent successfully/);
  await said(page, 'Hello from the company').waitFor();
  const token = await page.evaluate((key) => JSON.parse(localStorage.getItem(key)).t, `parley.${config.appId}`);
  await eventually('reading is stored', async () => {
    const { headers } = await fetch(`${config.base}/message?limit=1`, { headers: { Authorization: `Bearer ${token}` } });
    assert.equal(headers.get('parley-unread'), '0');
  });

  const before = await ids(page);
  await page.reload();
  await page.waitForFunction(() => window.Parley?.open);
  await launcher(page).click();
  await said(page, 'Hello from the company').waitFor();
  await eventually('the same messages after a reload', async () => assert.deepEqual(await ids(page), before));
  assert.deepEqual(await page.evaluate(() => window.violations), [], 'the policy is not violated');
  const third = page.asked.filter((u) => !own(u) && new URL(u).origin !== new URL(config.site).origin && !u.startsWith('data:'));
  assert.deepEqual(third, [], 'no third host is asked');
  assert.equal(await page.evaluate(() => document.querySelectorAll('[style]').length + document.querySelector('body > div:last-of-type').shadowRoot.querySelectorAll('[style]').length), 0, 'no element has an inline style');

  await page.getByRole('button', { name: 'More options' }).click();
  await page.getByRole('button', { name: 'Delete this chat from this browser' }).click();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByLabel('First name').waitFor();
  await eventually('everything is forgotten', async () => assert.deepEqual(await stored(), nothing));
  assert.deepEqual(page.faults, []);
  say('widget policy violations: 0, third hosts asked: 0');
}

/** A history of every type, and of what may be wrong with one. */
function gallery(base) {
  const now = Date.now();
  let n = 0;
  const m = (type, data, isFromSupport = true, ago = 60) => ({
    id: `00000000-0000-7000-8000-${String(++n).padStart(12, '0')}`, createdAt: new Date(now - ago * 60_000 + n * 1000).toISOString(), type, data,
    nameOfSender: isFromSupport ? 'Polly' : 'Ada', isFromSupport,
  });
  const file = (name, mime) => ({ url: `${base}/demo/assets/parley.png`, mime, fileName: name, size: 48213, extension: name.split('.').pop() });
  return [
    m('TEXT', { text: 'Hello, I am Polly. How can I help you today?' }, true, 3000),
    m('TEXT', { text: 'My parcel has not arrived yet.' }, false, 2990),
    m('TEMPLATE', { templateId: 'x', name: 'order', text: 'Hello Ada, your order 1042 is on its way: https://shop.example.com/orders/1042' }),
    m('INTERACTIVE', { header: 'Order 1042', body: 'It leaves the depot today.', footer: 'Open until 18:00', buttons: [{ type: 'reply', title: 'Change the address', payload: 'a' }, { type: 'url', title: 'Track it', url: 'https://shop.example.com/t' }, { type: 'phone', title: 'Call us', phone: '+982112345678' }] }),
    m('CAROUSEL', { cards: [{ title: 'Blue mug', subtitle: '0.3 l, stoneware', imageUrl: `${base}/demo/assets/parley.png`, buttons: [{ type: 'reply', title: 'Choose', payload: 'b' }] }, { title: 'Red mug', subtitle: 'Picture on another host', imageUrl: 'https://cdn.third.example/red.png', buttons: [{ type: 'reply', title: 'Choose', payload: 'r' }] }, { title: 'Green mug' }] }),
    m('IMAGE', { ...file('parcel.png', 'image/png'), caption: 'Your parcel at the depot' }),
    m('VIDEO', file('how-to-unbox.mp4', 'video/mp4')),
    m('AUDIO', file('voice-note.ogg', 'audio/ogg')),
    m('FILE', { ...file('invoice-2026-1042-final-version.pdf', 'application/pdf'), caption: 'The invoice' }),
    m('IMAGE', { url: 'https://cdn.third.example/x.png', fileName: 'elsewhere.png' }),
    m('TEXT', { text: 'Thank you, the evening is fine.' }, false, 4),
    m('MULTIPLE_CHOICE', { text: 'When shall we deliver?', choices: [{ title: 'Morning', payload: 'AM' }, { title: 'Evening', payload: 'PM' }] }, true, 3),
    m('FUTURE_TYPE', { what: 'ever' }, true, 3),
  ];
}

const cors = { 'Access-Control-Allow-Origin': '*', 'Access-Control-Allow-Headers': '*', 'Access-Control-Expose-Headers': 'Link', 'Cross-Origin-Resource-Policy': 'cross-origin' };

/** Answers the history in the server's place, in pages. */
async function withHistory(page, all) {
  await page.route(/\/message\?/, (route) => {
    const query = new URL(route.request().url()).searchParams;
    const end = query.has('before') ? all.findIndex((m) => m.id === query.get('before')) : all.length;
    const from = Math.max(0, end - Number(query.get('limit')));
    return route.fulfill({ json: all.slice(from, end), headers: { ...cors, ...(from && { Link: `<?before=${all[from].id}>; rel="next"` }) } });
  });
  await page.route(/\/read$/, (route) => route.fulfill({ status: 204, headers: cors }));
}

/** Every screen, in both directions and both schemes, through axe, with a picture of each. */
export async function screens({ config, open, say }) {
  const url = `${config.base}/demo`;
  let findings = 0;
  let audited = 0;
  for (const [language, rtl] of [['en', false], ['fa', true]]) {
    for (const phone of [false, true]) {
      await Promise.all(['light', 'dark'].map(async (scheme) => {
        const page = await open({
          url, colorScheme: scheme, bypassCSP: true, reducedMotion: 'reduce',
          ...(phone && { viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true }),
          before: async (p) => {
            await withHistory(p, gallery(config.base));
            await p.addInitScript((code) => {
              window.Parley = [['setLanguage', code]];
            }, language);
          },
        });
        await page.addScriptTag({ path: axeSource });
        const look = async (name) => {
          await page.evaluate(() => document.fonts.ready);
          const result = await page.evaluate(() => axe.run(document.querySelector('body > div:last-of-type'), { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }));
          audited++;
          for (const v of result.violations) {
            findings += v.nodes.length;
            for (const n of v.nodes) say(`axe ${name} ${language} ${scheme}: ${v.id}: ${n.target.flat().join(' ')}: ${n.any.concat(n.all, n.none).map((c) => c.message).join('; ')}`);
          }
          const file = ['widget', name, rtl ? 'rtl' : '', scheme === 'dark' ? 'dark' : '', phone ? 'phone' : ''].filter(Boolean).join('-');
          const around = { x: rtl ? 0 : 620, y: 0, width: 480, height: 850 };
          await page.screenshot({ path: join(config.shots, `${file}.png`), ...(!phone && !/launcher|chat/.test(name) && { clip: around }) });
        };
        await look('launcher');
        await page.evaluate(() => Parley.open());
        await page.locator('form.card input').first().waitFor();
        await look('form');
        await page.locator('form.card .primary').click();
        await page.locator('form.card .error').first().waitFor();
        await look('form-errors');
        await page.locator('input[name=firstName]').fill('Ada');
        await page.locator('input[name=email]').fill(`ada${unique()}@example.com`);
        await page.locator('form.card .primary').click();
        await page.locator('.t-future_type').waitFor();
        await look('chat');
        const log = page.locator('[role=log]');
        await log.evaluate((e) => { e.scrollTop = 0; });
        await page.locator('.t-interactive').waitFor();
        await look('types');
        await page.locator('.t-carousel').scrollIntoViewIfNeeded();
        await page.locator('.t-carousel img').first().waitFor();
        await look('cards');
        await page.locator('.t-audio').scrollIntoViewIfNeeded();
        await page.locator('.t-image img').first().waitFor();
        await look('files');
        await page.locator('.thumb').first().click();
        await page.locator('.preview img').waitFor();
        await look('preview');
        await page.keyboard.press('Escape');
        await page.locator('.header .round').first().click();
        await page.locator('.menu').waitFor();
        await look('menu');
        await page.locator('.menu .item').last().click();
        await page.locator('.danger').waitFor();
        await look('forget');
        await page.keyboard.press('Escape');
        assert.equal(await page.locator('.menu').count(), 0, 'Escape closes the menu, also when it asks');
        await page.locator('input[type=file]').first().setInputFiles([{ name: 'parcel.png', mimeType: 'image/png', buffer: picture }, { name: 'receipt.pdf', mimeType: 'application/pdf', buffer: Buffer.alloc(70_000, 120) }]);
        await page.locator('.staged li').last().waitFor();
        await page.locator('textarea').fill('The parcel and the receipt');
        await look('staged');
        const refuse = (route) => route.fulfill({ status: 413, headers: cors, json: { statusCode: 413, code: 'FILE_QUOTA', message: 'no' } });
        await page.route(/\/message$/, refuse);
        await page.locator('.sendbutton').click();
        await page.locator('.pending.bad').last().waitFor();
        await eventually('both are refused', async () => assert.equal(await page.locator('.pending.bad').count(), 2));
        await look('refused');
        for (let left = 2; left > 0; left--) {
          await page.locator('.pending.bad .textbutton').last().click();
          await eventually('it is deleted', async () => assert.equal(await page.locator('.pending.bad').count(), left - 1));
        }
        await page.unroute(/\/message$/, refuse);
        await page.context().setOffline(true);
        await page.locator('.banner').waitFor();
        await page.locator('#parley-text').fill('Written without a connection');
        await page.locator('.sendbutton').click();
        await page.locator('.pending').waitFor();
        await look('offline');
        assert.ok(page.asked.every((u) => !u.includes('third.example')), 'no third host is asked for a picture');
        if (phone) {
          const box = await page.locator('.p').boundingBox();
          assert.deepEqual([box.x, box.y, box.width], [0, 0, 390], 'on a phone the chat fills the screen');
          assert.ok((await page.locator('.p button:visible, .p input:visible, .p textarea').evaluateAll((all) => all.filter((e) => !e.disabled && e.getBoundingClientRect().width > 0 && (e.offsetWidth < 24 || e.offsetHeight < 24)).map((e) => e.outerHTML))).length === 0, 'what is touched has 24 px');
          assert.equal(await page.locator('textarea').evaluate((e) => parseFloat(getComputedStyle(e).fontSize)), 16);
        }
        assert.equal(await page.locator('.p').getAttribute('dir'), rtl ? 'rtl' : 'ltr');

        // On the next page, with all of it unread; without its position in the stream, which has another greeting.
        await page.evaluate((key) => {
          Parley.destroy();
          const { r, p, ...rest } = JSON.parse(localStorage.getItem(key));
          localStorage.setItem(key, JSON.stringify({ ...rest, n: 1 }));
        }, `parley.${config.appId}`);
        await page.route(/\/message$/, refuse); // else the bot answers what was written offline, and that is unread too
        await page.context().setOffline(false);
        await page.reload();
        await page.addScriptTag({ path: axeSource });
        await page.getByRole('button', { name: /: 11$/ }).waitFor();
        await look('launcher-unread');
        assert.deepEqual(page.faults, []);
        await page.context().close();
      }));
    }
  }
  say(`widget axe: ${findings} findings on ${audited} screens`);
  assert.equal(findings, 0);
}

/** The chat by keyboard alone, zoomed, and with forced colours. */
export async function keyboard({ open, say }) {
  const page = await open({ viewport: { width: 640, height: 480 }, forcedColors: 'active', reducedMotion: 'reduce' }); // 1280 x 960 at 200%
  const focused = () => page.evaluate(() => {
    const e = document.activeElement?.shadowRoot?.activeElement ?? document.activeElement;
    return e?.getAttribute('aria-label') || e?.name || e?.textContent?.trim().slice(0, 40) || e?.tagName;
  });
  const tabTo = async (wanted) => {
    for (let i = 0; i < 40; i++) {
      if (wanted.test(await focused())) return;
      await page.keyboard.press('Tab');
    }
    assert.fail(`Tab does not reach ${wanted}, but ${await focused()}`);
  };
  await tabTo(/^Open chat/);
  await page.keyboard.press('Enter');
  await page.getByLabel('First name').waitFor();
  await eventually('the first field has the focus', async () => assert.equal(await focused(), 'firstName'));
  await page.keyboard.type('Ada');
  await tabTo(/^email/);
  await page.keyboard.type(`ada${unique()}@example.com`);
  await page.keyboard.press('Enter');
  await eventually('the composer has the focus', async () => assert.equal(await focused(), 'Your message'));
  await page.keyboard.type('menu');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'What time is it?' }).waitFor();
  await eventually('the answer is read out', async () => assert.match(await page.locator('[aria-live=polite]').textContent(), /^Polly: Here is what I can show you/));
  assert.equal(await page.locator('[aria-live=polite], [aria-live=assertive], [role=alert]').count(), 1, 'one announcer');
  for (let i = 0; i < 40 && (await focused()) !== 'Messages'; i++) await page.keyboard.press('Shift+Tab');
  await page.keyboard.press('ArrowUp'); // the newest message
  await page.keyboard.press('Enter'); // into it
  await eventually('Enter goes into the message', async () => assert.match(await focused(), /Show me a picture/));
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab');
  assert.match(await focused(), /What time is it/);
  await page.keyboard.press('Enter');
  await said(page, /^Your message came at/).waitFor();
  await page.keyboard.press('Escape'); // out of the message
  await tabTo(/^More options/);
  await page.keyboard.press('Enter');
  await tabTo(/^Delete this chat/);
  await page.keyboard.press('Enter');
  await eventually('the question has the focus, on what does no harm', async () => assert.equal(await focused(), 'Cancel'));
  await page.keyboard.press('Escape');
  await eventually('and gives it back', async () => assert.equal(await focused(), 'More options'));
  await page.keyboard.press('Enter');
  await page.locator('.menu').waitFor();
  await tabTo(/^Messages$/);
  assert.equal(await page.locator('.menu').count(), 0, 'the menu closes behind the focus');
  await page.keyboard.press('Escape');
  await eventually('Escape closes and gives the focus back', async () => assert.match(await focused(), /^Open chat/));
  assert.deepEqual(page.faults, []);
  say('widget keyboard: the whole chat');
}

/** Each function of the API that the rest does not use, and each event. */
async function api(page, config) {
  await page.evaluate(() => {
    window.seen = [];
    window.once = () => seen.push('once');
    for (const e of ['open', 'close', 'message', 'unread', 'registered', 'error', 'state']) Parley.on(e, (detail) => seen.push([e, detail]));
    Parley.on('open', once);
    Parley.on('open', () => { throw new Error("the site's own fault"); });
  });
  const seen = (event) => page.evaluate((event) => window.seen.filter((s) => s[0] === event).map((s) => s[1]), event);
  assert.equal(await page.evaluate(async () => (await Parley.ready()) === Parley), true);
  assert.equal(await page.evaluate(() => new Promise((done) => Parley.push((parley) => done(parley === Parley)))), true);
  await page.evaluate(() => Parley.toggle());
  await page.getByLabel('First name').waitFor();
  await page.evaluate(() => (Parley.off('open', once), Parley.toggle(), Parley.toggle(), Parley.close(), Parley.close()));
  assert.deepEqual(await page.evaluate(() => seen.filter((s) => s === 'once').length), 1, 'a listener that is taken off hears no more');
  assert.deepEqual([(await seen('open')).length, (await seen('close')).length], [2, 2], 'once for each change');
  await page.route(`${config.base}/register`, (route) => route.fulfill({ status: 503, headers: cors, json: { statusCode: 503, code: 'UNAVAILABLE', message: 'Try later.' } }));
  await page.evaluate(() => (Parley.identify({ userId: 'api', email: 'api@example.com', firstName: 'Ada' }), Parley.open()));
  await eventually('the error is told', async () => assert.deepEqual(await seen('error'), [{ code: 'UNAVAILABLE', status: 503, message: 'Try later.' }]));
  await page.unroute(`${config.base}/register`);
  await page.evaluate((userId) => Parley.identify({ userId, email: `${userId}@example.com`, firstName: 'Ada' }), `api-${unique()}`);
  await rows(page).first().waitFor();
  assert.match((await seen('registered'))[0].chatUserId, /^[0-9a-f-]{36}$/);
  await write(page, 'thanks');
  await said(page, 'You are welcome.').waitFor();
  await eventually('both messages are told', async () => assert.deepEqual((await seen('message')).map((m) => `${m.type} ${m.isFromSupport} ${m.data.text}`).sort(), ['TEXT false thanks', 'TEXT true You are welcome.']));
  await page.evaluate(() => Parley.close());
  await page.evaluate(() => Parley.identify({ userId: 'somebody else', email: 'else@example.com', firstName: 'Eve' })); // ends the session of the first one
  await eventually('registered again', async () => assert.equal(new Set((await seen('registered')).map((r) => r.chatUserId)).size, 2));
  await page.evaluate(() => (Parley.open(), Parley.logout()));
  await eventually('logged out', async () => assert.deepEqual(await page.evaluate(() => Object.keys(localStorage)), []));
  const states = await seen('state');
  for (const state of ['form', 'connecting', 'online']) assert.ok(states.includes(state), `${state} in ${states}`);
  assert.deepEqual(page.faults, []);
  await page.context().close();
}

/** The widget and the page that it lives in. */
export async function life({ config, open, say }) {
  const site = await ownSite();
  const { url } = site;
  site.serve(`<!doctype html><html lang="en"><title>Site</title>${tagOf(config)}<body></body>`);
  await api(await open({ url }), config);
  const tag = (more) => tagOf(config, more);
  const serve = async (_, html) => site.serve(html);
  const hostile = '<style>*{all:unset!important;display:block!important;color:red!important;font-size:40px!important} div,button,:host{position:static!important;display:none!important} html{font-size:3px}</style>';

  let page = await open({ url, before: (p) => serve(p, `<!doctype html><html lang="de"><title>Site</title>${hostile}<script>window.seen=[];Parley=[['on','open',()=>seen.push('open')],['on','state',s=>seen.push(s)],['on','unread',n=>seen.push(n)],['open']]</script>${tag()}<body><h1>Site</h1></body>`) });
  await page.getByLabel('Vorname').waitFor(); // the queue opened it, in the page's language
  assert.ok((await page.evaluate(() => seen)).includes('open'));
  const look = await page.locator('.p').evaluate((e) => ({ width: e.offsetWidth, position: getComputedStyle(e).position, size: getComputedStyle(e).fontSize }));
  assert.deepEqual(look, { width: 400, position: 'fixed', size: '15px' }, "the site's styles do not reach the widget");
  await page.evaluate(() => Parley.setLanguage('fa'));
  await page.locator('.p[dir=rtl]').waitFor();
  await page.evaluate(() => (Parley.setLanguage('en'), Parley.setTheme('dark')));
  await page.locator('.p[data-theme=dark][dir=ltr]').waitFor();
  await page.evaluate(() => Parley.hide());
  await eventually('hidden', async () => assert.equal(await page.getByRole('button', { name: 'Open chat' }).count(), 0));
  await page.evaluate(() => (Parley.show(), Parley.open()));
  await page.getByLabel('First name').fill('kept');

  // Turbo replaces the body, and runs its scripts again.
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
  await eventually('the widget survives the change of the body', async () => assert.equal(await page.getByLabel('First name').inputValue(), 'kept'));
  assert.equal(await page.evaluate(() => [...document.body.children].filter((e) => e.shadowRoot).length), 1, 'and there is one');

  // Who the site knows needs no form; storage that is blocked is no obstacle.
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
  await said(page, 'Hello, I am Polly, the demo bot.').waitFor();
  await page.getByText('Your browser stores nothing').waitFor();
  await write(page, 'thanks');
  await said(page, 'You are welcome.').waitFor();
  assert.ok((await page.locator('.p').boundingBox()).x < 50);
  await page.evaluate(() => Parley.logout());
  await page.getByLabel('First name').waitFor();
  assert.deepEqual(page.faults, []);
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

  // A hundred times there and gone.
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
  const after = await eventually('timers end', async () => {
    const m = await measure();
    assert.equal(m.timers, 0);
    return m;
  });
  say(`widget after 100 cycles: ${JSON.stringify(after)}`);
  assert.deepEqual({ ...after, nodes: 0, jsEventListeners: 0 }, { ...before, timers: 0, nodes: 0, jsEventListeners: 0 });
  assert.ok(after.nodes <= before.nodes + 50 && after.jsEventListeners <= before.jsEventListeners + 5, `nodes and listeners are released: ${JSON.stringify([before, after])}`);
  assert.equal(await page.evaluate(() => 'Parley' in window), false);
  site.close();
  assert.deepEqual(page.faults, []);
}

/** Two tabs, one truth; and an outbox that outlives a reload without a connection. */
export async function tabs({ open, say }) {
  const one = await open();
  await register(one);
  // What the second tab says over its channel comes too early to be of use: another tab sees a write to localStorage later.
  const early = () => {
    const { postMessage } = BroadcastChannel.prototype;
    BroadcastChannel.prototype.postMessage = function (event) {
      if (!window.early || ['hello', 'ping', 'pong'].includes(event.kind)) postMessage.call(this, event);
    };
    window.early = true;
  };
  const two = await open({ context: one.context(), before: (p) => p.addInitScript(early) });
  await two.evaluate(() => Parley.open());
  await rows(two).first().waitFor();
  await write(two, 'from the second tab');
  await said(two, 'You wrote “from the second tab”').waitFor();
  await said(one, 'You wrote “from the second tab”').waitFor();
  await eventually('both tabs show the same', async () => assert.deepEqual(await ids(one), await ids(two)));
  await two.evaluate(() => { window.early = false; });
  assert.ok(sockets(one) > 0 && sockets(two) === 0, 'one socket for both');

  await two.evaluate(() => Parley.close());
  await one.evaluate(() => Parley.close());

  // The tab with the socket goes: the other one takes over.
  await one.close();
  await two.evaluate(() => Parley.open());
  await eventually('the second tab has a socket', async () => assert.ok(sockets(two) > 0));
  await write(two, 'after the first tab has gone');
  await said(two, 'You wrote “after the first tab has gone”').waitFor();

  // Written while the server cannot be reached, kept over a reload, and sent once, in order.
  const away = (route) => route.abort();
  await two.context().route(/\/(message|socket\.io)/, away);
  for (const text of ['first away', 'second away', 'third away']) await write(two, text);
  await eventually('three wait', async () => assert.equal(await two.locator('.pending').count(), 3));
  await two.clock.install({ time: Date.now() + 3600_000 }); // the page begins again an hour later
  await two.reload();
  await two.waitForFunction(() => window.Parley?.open);
  await two.evaluate(() => Parley.open());
  await eventually('three still wait', async () => assert.equal(await two.locator('.pending').count(), 3));
  await two.context().unroute(/\/(message|socket\.io)/, away);
  await two.evaluate(() => dispatchEvent(new Event('online')));
  await said(two, 'You wrote “third away”').waitFor();
  const sent = (await texts(two, '.mine .words')).filter((t) => t.endsWith(' away'));
  assert.deepEqual(sent, ['first away', 'second away', 'third away']);

  // What comes while the chat is closed is counted, on the launcher, in the title and for the site.
  await eventually('the replies are read', async () => assert.equal(await two.getByRole('button', { name: /^Close chat: \d/ }).count(), 0));
  await two.evaluate(() => Parley.close());
  const title = await two.title();
  await companyWrites(two);
  await two.getByRole('button', { name: 'Open chat: 1' }).waitFor();
  await eventually('the title counts', async () => assert.equal(await two.title(), `(1) ${title}`));
  await two.reload(); // a stored session with unread messages loads by itself
  await two.getByRole('button', { name: 'Open chat: 1' }).click();
  await eventually('read', async () => assert.equal(await two.title(), title));

  // A session that ends here ends everywhere, and leaves nothing.
  const three = await open({ context: two.context() });
  await three.evaluate(() => Parley.open());
  await said(three, 'You wrote “third away”').waitFor();
  await three.evaluate(() => Parley.forget());
  for (const page of [two, three]) await page.getByLabel('First name').waitFor();
  await eventually('nothing is stored', async () => assert.deepEqual(await two.evaluate(() => Object.keys(localStorage)), []));
  // And one that begins in one tab begins in the other.
  await two.getByLabel('First name').fill('Ada');
  await two.getByLabel('Email').fill(`ada${unique()}@example.com`);
  await two.getByRole('button', { name: 'Start the chat' }).click();
  await rows(three).first().waitFor();
  assert.deepEqual([...two.faults, ...three.faults], []);
  say('widget tabs: one socket, one truth');
}

/** Two thousand messages. */
export async function scale({ config, open, say }) {
  const start = Date.parse('2026-01-01T10:00:00Z');
  const all = Array.from({ length: 2000 }, (_, n) => ({
    id: `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`, createdAt: new Date(start + n * 400_000).toISOString(), type: 'TEXT',
    data: { text: `message ${n} ${'with some words '.repeat(n % 7)}` }, nameOfSender: 'Polly', isFromSupport: n % 3 !== 0,
  }));
  const page = await open({ url: `${config.base}/demo`, before: (p) => withHistory(p, all) });
  await register(page);
  await said(page, 'message 1999').waitFor();
  const log = page.locator('[role=log]');
  for (let loaded = 50; loaded < 2000; ) {
    const oldest = await page.evaluate(() => document.querySelector('body > div:last-of-type').shadowRoot.querySelector('[role=log] article').dataset.id);
    await log.evaluate((e) => { e.scrollTop = 0; });
    await eventually('older messages', async () => {
      await log.evaluate((e) => { if (e.scrollTop > 900) e.scrollTop = 0; });
      const now = await page.evaluate(() => document.querySelector('body > div:last-of-type').shadowRoot.querySelector('[role=log] article').dataset.id);
      assert.ok(now < oldest);
      loaded = 2000 - Number(now.slice(-12));
    });
  }
  await log.evaluate((e) => { e.scrollTop = 0; });
  await said(page, 'This is the beginning of the conversation.').waitFor();
  assert.ok((await rows(page).count()) < 120, `few of 2,000 messages are in the document: ${await rows(page).count()}`);
  assert.deepEqual((await texts(page)).slice(0, 2).map((t) => t.trim().split(' with')[0]), ['message 0', 'message 1']);

  // What the visitor looks at stays where it is, whatever arrives.
  await log.evaluate((e) => { e.scrollTop = e.scrollHeight / 2; });
  const middle = () => page.evaluate(() => {
    const root = document.querySelector('body > div:last-of-type').shadowRoot;
    const top = root.querySelector('[role=log]').getBoundingClientRect().top;
    const row = [...root.querySelectorAll('[role=log] article[data-id]')].find((e) => e.getBoundingClientRect().top > top + 100);
    return [row.dataset.id, Math.round(row.getBoundingClientRect().top - top)];
  });
  await new Promise((done) => setTimeout(done, 300)); // the pages around are measured
  const held = await middle();
  await composer(page).focus();
  const latency = await page.evaluate(async () => {
    const area = document.querySelector('body > div:last-of-type').shadowRoot.querySelector('textarea');
    const took = [];
    for (let i = 0; i < 30; i++) {
      const at = performance.now();
      area.setRangeText('x', i, i, 'end');
      area.dispatchEvent(new InputEvent('input', { bubbles: true, composed: true }));
      await new Promise((done) => requestAnimationFrame(() => { const c = new MessageChannel(); c.port1.onmessage = done; c.port2.postMessage(0); }));
      took.push(performance.now() - at);
    }
    return took.sort((a, b) => a - b)[15];
  });
  say(`widget input latency with 2,000 messages: ${latency.toFixed(1)} ms (median of 30)`);
  assert.ok(latency < 500, `typing is not held up by the messages: ${latency} ms`); // 50 on a machine of its own
  const now = await middle();
  assert.ok(now[0] === held[0] && Math.abs(now[1] - held[1]) <= 2, `the visitor's place: got ${now}, want ${held}`);
  await page.getByRole('button', { name: /Go to the newest|new message/ }).click();
  await said(page, 'message 1999').waitFor();
  assert.deepEqual(page.faults, []);
}

/** Gateways are killed and come back, the network too: nothing is lost, nothing twice, all in order. The test pulls the strings. */
export async function comingBack({ open, say, next }) {
  const page = await open();
  await register(page);
  await write(page, 'before');
  await said(page, 'You wrote “before”').waitFor();
  const wanted = ['before'];
  for (let round = 0; ; round++) {
    say(`ready ${round}`);
    const order = await next();
    if (order === 'end') break;
    if (order === 'offline') await page.context().setOffline(true);
    const text = `round ${round}`;
    await write(page, text);
    wanted.push(text);
    if (order === 'offline') {
      await page.getByText('You are offline.').first().waitFor();
      await page.context().setOffline(false);
    }
    await said(page, `You wrote “${text}”`).waitFor();
  }
  const mine = (await texts(page, '.mine .words')).map((t) => t.trim());
  assert.deepEqual(mine, wanted, 'each message once, in order');
  const answers = (await texts(page, '.theirs .words')).filter((t) => t.startsWith('You wrote')).map((t) => /“(.*?)”/.exec(t)[1]);
  assert.deepEqual(answers, wanted, 'each answer once, in order');
  assert.deepEqual(page.faults, []);
  say(`widget coming back: ${wanted.length} of ${wanted.length} messages, 0 lost, 0 doubled`);
}

/** The tab with the socket crashes, or hangs: another one takes over, and nothing is missing. */
export async function takeover({ open, say }) {
  const one = await open();
  await register(one);
  const two = await open({ context: one.context() });
  await two.evaluate(() => Parley.open());
  await rows(two).first().waitFor();
  await eventually('the first tab has the socket', async () => assert.ok(sockets(one) > 0 && sockets(two) === 0));
  await write(two, 'before');
  await said(two, 'You wrote “before”').waitFor();

  // A reply comes while no tab has a socket, and the history does not have it yet: the stream does.
  const history = await two.evaluate(async () => {
    const { t } = JSON.parse(localStorage.getItem(Object.keys(localStorage).find((k) => /^parley\.[^.]+$/.test(k))));
    return (await fetch(`${new URL(document.querySelector('script[data-app-id]').src).origin}/message?limit=50`, { headers: { Authorization: `Bearer ${t}` } })).json();
  });
  const stale = (route) => (route.request().method() === 'GET' ? route.fulfill({ json: history, headers: cors }) : route.fallback());
  const away = (route) => route.abort();
  await two.route(/\/message\?/, stale);
  await two.route(/\/socket\.io\//, away);
  const crashed = new Promise((done) => one.once('crash', done));
  void (await one.context().newCDPSession(one)).send('Page.crash').catch(() => {});
  await crashed;
  await eventually('the second tab tries to connect', async () => assert.ok(sockets(two) > 0));
  await companyWrites(two);
  await two.unroute(/\/socket\.io\//, away);
  await said(two, 'Hello from the company').waitFor();
  await two.unroute(/\/message\?/, stale);

  // A tab that hangs keeps its lock, and loses it to one that has something to send.
  const three = await open({ context: two.context() });
  await three.evaluate(() => Parley.open());
  await said(three, 'Hello from the company').waitFor();
  let hangs = true;
  const woken = two.evaluate(() => {
    const end = Date.now() + 6_000;
    while (Date.now() < end);
  }).then(() => { hangs = false; });
  await write(three, 'while the leader hangs');
  await said(three, 'You wrote “while the leader hangs”').waitFor();
  assert.ok(sockets(three) > 0, 'the third tab has a socket');
  say(`widget takeover: ${hangs ? 'while the other tab hung' : 'after the other tab had woken up'}`);
  await woken;
  await write(two, 'after waking');
  await said(two, 'You wrote “after waking”').waitFor();
  await said(three, 'You wrote “after waking”').waitFor();
  await eventually('both tabs show the same', async () => assert.deepEqual(await ids(two), await ids(three)));
  assert.deepEqual((await texts(two, '.mine .words')).map((t) => t.trim()), ['before', 'while the leader hangs', 'after waking'], 'each once, in order');
  assert.deepEqual([...two.faults, ...three.faults], []);
}

/** One sound for a message, however many tabs there are, and none when it is turned off in one of them. */
export async function sound({ open, say }) {
  const tones = (p) => p.addInitScript(() => {
    window.tones = 0;
    const { createOscillator } = AudioContext.prototype;
    AudioContext.prototype.createOscillator = function () {
      window.tones++;
      return createOscillator.call(this);
    };
  });
  const one = await open({ before: tones });
  await register(one);
  const two = await open({ context: one.context(), before: tones });
  await launcher(two).click();
  await rows(two).first().waitFor();
  const heard = async () => (await Promise.all([one, two].map((p) => p.evaluate(() => window.tones / 2)))).reduce((a, b) => a + b);
  const unread = async (n) => {
    for (const page of [one, two]) await page.getByRole('button', { name: `Open chat: ${n}` }).waitFor();
  };
  await write(two, 'in sight');
  for (const page of [one, two]) await said(page, 'You wrote “in sight”').waitFor();
  assert.equal(await heard(), 0, 'what is seen makes no sound');
  for (const page of [one, two]) await page.evaluate(() => Parley.close());
  await companyWrites(two);
  await unread(1);
  await eventually('it sounds', async () => assert.equal(await heard(), 1));

  await two.evaluate(() => Parley.open());
  await two.getByRole('button', { name: 'More options' }).click();
  await two.getByRole('button', { name: 'Turn sound off' }).click();
  await two.getByRole('button', { name: 'Turn sound on' }).waitFor();
  await two.evaluate(() => Parley.close());
  await one.evaluate(() => Parley.open());
  await one.getByRole('button', { name: 'More options' }).click();
  await one.getByRole('button', { name: 'Turn sound on' }).waitFor(); // off here too
  await one.evaluate(() => Parley.close());
  await launcher(one).waitFor();
  await companyWrites(two);
  await unread(1);
  assert.equal(await heard(), 1, 'no sound when it is off');
  await two.reload();
  await two.getByRole('button', { name: 'Open chat: 1' }).click();
  await two.getByRole('button', { name: 'More options' }).click();
  await two.getByRole('button', { name: 'Turn sound on' }).waitFor(); // remembered
  assert.deepEqual([...one.faults, ...two.faults], []);
  say('widget sound: one for two tabs, none when off');
}

/** Files that are dropped, pasted, cancelled, refused and sent again. */
export async function files({ open, say }) {
  const page = await open();
  await register(page);
  const transfer = (name, type, size) => page.evaluateHandle(([name, type, size]) => {
    const data = new DataTransfer();
    data.items.add(new File([new Uint8Array(size).fill(120)], name, { type }));
    return data;
  }, [name, type, size]);
  const panel = page.locator('.p');

  const dropped = { dataTransfer: await transfer('dropped.txt', 'text/plain', 20) };
  await panel.dispatchEvent('dragenter', dropped);
  await page.getByText('Drop files here to send them').waitFor();
  await panel.dispatchEvent('dragleave', dropped);
  await eventually('the sign goes with the file', async () => assert.equal(await page.locator('.drop').count(), 0));
  await panel.dispatchEvent('dragenter', dropped);
  assert.equal(await panel.evaluate((e, dataTransfer) => e.dispatchEvent(new DragEvent('dragover', { dataTransfer, bubbles: true, cancelable: true })), dropped.dataTransfer), false, 'a file may be dropped');
  await panel.dispatchEvent('drop', dropped);
  await page.locator('.staged').getByText('dropped.txt').waitFor();
  assert.equal(await page.locator('.drop').count(), 0);

  const pasted = await transfer('pasted.txt', 'text/plain', 30);
  await composer(page).evaluate((e, clipboardData) => e.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true })), pasted);
  await page.locator('.staged').getByText('pasted.txt').waitFor();
  const picked = async (...names) => {
    const [chooser] = await Promise.all([page.waitForEvent('filechooser'), page.getByRole('button', { name: 'Attach files' }).click()]);
    await chooser.setFiles(names.map((name) => ({ name, mimeType: 'text/plain', buffer: Buffer.alloc(name.startsWith('large') ? 400_000 : 10, 120) })));
  };
  await picked('unwanted.txt');
  await page.getByRole('button', { name: 'Remove unwanted.txt' }).click();
  await write(page, 'two files');
  for (const name of ['dropped.txt', 'pasted.txt']) await page.locator('.mine.t-file').filter({ hasText: name }).waitFor();
  assert.equal(await page.locator('.mine.t-file').filter({ hasText: 'two files' }).count(), 1, 'the text is the caption of the first one');
  assert.equal(await page.locator('.mine').filter({ hasText: 'unwanted' }).count(), 0);

  // A slow upload shows how far it is, and is stopped.
  const client = await page.context().newCDPSession(page);
  const slow = (bytes) => client.send('Network.emulateNetworkConditions', { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: bytes });
  await client.send('Network.enable');
  await slow(40_000);
  await picked('large.txt');
  await page.getByRole('button', { name: 'Send', exact: true }).click();
  await eventually('progress', async () => assert.ok((await page.locator('progress').evaluate((e) => e.value)) > 0));
  await write(page, 'after the file');
  await page.getByRole('button', { name: 'Cancel sending large.txt' }).click();
  await slow(-1);
  await said(page, 'You wrote “after the file”').waitFor();
  assert.equal(await page.locator('.mine').filter({ hasText: 'large.txt' }).count(), 0, 'it is gone');

  // A file that the server refuses stays, over a reload too, until the visitor sends it again.
  const refuse = (route) => (route.request().method() === 'POST' ? route.fulfill({ status: 413, headers: cors, json: { statusCode: 413, code: 'FILE_QUOTA', message: 'no' } }) : route.fallback());
  await page.context().route(/\/message$/, refuse);
  await picked('refused.txt');
  await page.getByRole('button', { name: 'Send', exact: true }).click();
  await page.locator('.bad').filter({ hasText: 'refused.txt' }).waitFor();
  await page.reload();
  await page.waitForFunction(() => window.Parley?.open);
  await page.evaluate(() => Parley.open());
  await page.locator('.bad').filter({ hasText: 'refused.txt' }).waitFor();
  await page.context().unroute(/\/message$/, refuse);
  await page.getByRole('button', { name: 'Send again' }).click();
  await page.locator('.mine.t-file:not(.pending)').filter({ hasText: 'refused.txt' }).waitFor();
  await said(page, 'I got refused.txt').waitFor();
  assert.equal(await page.locator('.mine').filter({ hasText: 'refused.txt' }).count(), 1, 'once');
  await eventually('no file waits any more', async () => assert.deepEqual(await page.evaluate(async () => {
    const [{ name }] = await indexedDB.databases();
    const db = await new Promise((done) => { const r = indexedDB.open(name); r.onsuccess = () => done(r.result); });
    const keys = await new Promise((done) => { const r = db.transaction('files').objectStore('files').getAllKeys(); r.onsuccess = () => done(r.result); });
    db.close();
    return keys;
  }), []));
  assert.deepEqual(page.faults, []);
  say('widget files: dropped, pasted, picked, cancelled, sent again');
}

/** A phone: the keyboard takes half of the screen, and nothing of the chat is under it. */
export async function phone({ config, open, say }) {
  const page = await open({
    url: `${config.base}/demo`, viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true,
    before: (p) => p.addInitScript(() => {
      // Chromium shows no keyboard here: the visual viewport says what it would say with one.
      const shown = {};
      for (const key of ['height', 'offsetTop']) {
        const { get } = Object.getOwnPropertyDescriptor(VisualViewport.prototype, key);
        Object.defineProperty(VisualViewport.prototype, key, { get() { return shown[key] ?? get.call(this); } });
      }
      window.keyboard = (height, offsetTop) => {
        Object.assign(shown, { height, offsetTop });
        visualViewport.dispatchEvent(new Event('resize'));
      };
    }),
  });
  await launcher(page).tap();
  await page.getByLabel('First name').waitFor();
  assert.notEqual(await page.evaluate(() => document.querySelector('body > div:last-of-type').shadowRoot.activeElement?.tagName), 'INPUT', 'the keyboard does not come up by itself');
  await page.getByLabel('First name').fill('Ada');
  await page.getByLabel('Email').fill(`ada${unique()}@example.com`);
  await page.getByRole('button', { name: 'Start the chat' }).tap();
  await rows(page).first().waitFor();
  await composer(page).tap();
  const [camera] = await Promise.all([page.waitForEvent('filechooser'), page.getByRole('button', { name: 'Take a photo' }).tap()]);
  assert.equal(await camera.element().getAttribute('capture'), 'environment');
  await camera.setFiles([{ name: 'photo.png', mimeType: 'image/png', buffer: png }]);
  await page.getByRole('button', { name: 'Remove photo.png' }).tap();
  for (let i = 0; i < 6; i++) await write(page, `line ${i}`);
  await said(page, 'You wrote “line 5”').waitFor();
  await page.evaluate(() => keyboard(420, 60));
  const panel = async () => {
    const { x, y, width, height } = await page.locator('.p').boundingBox();
    return [x, y, width, height];
  };
  await eventually('the chat takes what is left', async () => assert.deepEqual(await panel(), [0, 60, 390, 420]));
  const area = await composer(page).boundingBox();
  assert.ok(area.y >= 60 && area.y + area.height <= 480, `the composer is above the keyboard: ${JSON.stringify(area)}`);
  await eventually('the newest message is in sight', async () => {
    const { y, height } = await rows(page).last().boundingBox();
    assert.ok(y > 60 && y + height <= area.y + 1, `${y} ${height}`);
  });
  await page.evaluate(() => keyboard(undefined, undefined));
  await eventually('and the screen again', async () => assert.deepEqual(await panel(), [0, 0, 390, 780]));
  await page.evaluate(() => Object.defineProperty(visualViewport, 'scale', { value: 2, configurable: true }));
  await page.evaluate(() => keyboard(390, 100)); // zoomed with two fingers
  await eventually('who zooms does not change the chat', async () => assert.deepEqual(await panel(), [0, 0, 390, 780]));
  await page.locator('.header').getByRole('button', { name: 'Close chat' }).tap();
  await launcher(page).waitFor();
  assert.deepEqual(page.faults, []);
  say('widget phone: the composer stays above the keyboard');
}

/** Pages that change without a load: a new body, and view transitions. */
export async function navigation({ config, open, say }) {
  const site = await ownSite();
  site.serve(`<!doctype html><html lang="en"><title>Site</title>${tagOf(config)}<body><main>First</main></body>`);
  const page = await open({ url: site.url });
  await page.evaluate(() => { window.seen = []; for (const e of ['open', 'close']) Parley.on(e, () => seen.push(e)); });
  await register(page);
  await write(page, 'before');
  await said(page, 'You wrote “before”').waitFor();
  const visit = (name, transition) => page.evaluate(async ({ name, transition, src, appId }) => {
    const swap = () => {
      const body = document.createElement('body');
      body.innerHTML = `<main>${name}</main>`;
      const script = document.createElement('script'); // a tag in the body runs on each visit
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
    assert.equal(await composer(page).inputValue(), 'half a sen', `what was being written, after ${name}`);
    await said(page, 'You wrote “before”').waitFor();
  }
  await composer(page).press('End');
  await page.keyboard.type('tence');
  await composer(page).press('Enter');
  await said(page, 'You wrote “half a sentence”').waitFor();
  assert.deepEqual(await page.evaluate(() => [seen, Object.keys(Parley.widgets).length]), [['open'], 1]);
  assert.deepEqual(page.faults, []);
  site.close();
  say('widget navigation: a new body and view transitions');
}

/** The package of bundlers: load(), and the React component, on a page with trusted types. */
export async function packaged({ config, open, say }) {
  const folder = fileURLToPath(new URL('../../../web/widget/package', import.meta.url));
  const source = `
    import { createElement, StrictMode, useState } from 'react';
    import { createRoot } from 'react-dom/client';
    import { load } from './index.js';
    import { ParleyWidget } from './react.js';
    const place = ${JSON.stringify({ baseUrl: config.base, appId: config.appId })};
    window.begin = () => load({ ...place, position: 'left', theme: 'dark', color: '#123456' });
    let root;
    const seen = (window.seen = []);
    const App = ({ initial }) => {
      const [props, setProps] = useState(initial);
      window.change = (more) => setProps({ ...props, ...more });
      return createElement(ParleyWidget, { ...place, ...props, onLoad: (parley) => { window.parley = parley; parley.on('state', (s) => seen.push(s)); } });
    };
    window.mount = (props) => { root = createRoot(document.querySelector('main')); root.render(createElement(StrictMode, null, createElement(App, { initial: props }))); };
    window.unmount = () => root.unmount();
  `;
  const { outputFiles: [{ text: script }] } = await build({ stdin: { contents: source, resolveDir: folder }, bundle: true, format: 'iife', write: false, logLevel: 'silent', define: { 'process.env.NODE_ENV': '"development"' } });
  const site = await ownSite();
  site.serve(`<!doctype html><html lang="en"><title>Site</title>
    <meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'nonce-n' 'strict-dynamic'; connect-src ${config.base} ${config.base.replace('http', 'ws')}; img-src ${config.base}; require-trusted-types-for 'script'; trusted-types parley">
    <body><main></main><script nonce="n">${script.replaceAll('</script', '<\\/script')}</script></body>`);
  const page = await open({ url: site.url, ready: false });
  const elements = () => page.evaluate(() => [...document.body.children].filter((e) => e.shadowRoot).length);

  await page.evaluate(() => {
    window.parley = begin();
    parley.on('open', () => seen.push('open'));
    parley.open(); // waits until it is there
    return parley.ready();
  });
  await page.locator('.p[data-theme=dark]').waitFor();
  await page.getByLabel('First name').waitFor();
  assert.ok((await page.locator('.p').boundingBox()).x < 50);
  assert.deepEqual(await page.evaluate(() => seen), ['open']);
  await page.evaluate(() => parley.destroy());
  assert.equal(await elements(), 0);
  await page.evaluate(() => { const p = begin(); p.open(); p.destroy(); return new Promise((done) => setTimeout(done, 300)); });
  assert.equal(await elements(), 0, 'one that is destroyed before it is there does not come');

  // StrictMode mounts, unmounts and mounts again.
  await page.evaluate(() => mount({ lang: 'de' }));
  await eventually('one widget', async () => assert.equal(await elements(), 1));
  await page.evaluate(() => parley.open());
  await page.getByLabel('Vorname').waitFor();
  await page.evaluate(() => change({ lang: 'en', theme: 'dark' }));
  await page.getByLabel('First name').waitFor();
  await page.locator('.p[data-theme=dark]').waitFor();
  const user = `react-${unique()}`;
  await page.evaluate((userId) => change({ identity: { userId, firstName: 'Ada', email: `${userId}@example.com` } }), user);
  await said(page, 'Hello, I am Polly, the demo bot.').waitFor();
  await page.evaluate(() => change({ identity: undefined })); // logged out
  await page.getByLabel('First name').waitFor();
  await page.evaluate(() => unmount());
  await eventually('it goes with the component', async () => assert.equal(await elements(), 0));
  assert.equal(await page.evaluate(() => 'Parley' in window), false);
  assert.deepEqual([await page.evaluate(() => window.violations), page.faults], [[], []]);
  site.close();
  say('widget package: load() and React, policy violations: 0');
}

/** Who visitors are is proved by the company's server, and their token is renewed before it expires. The test signs for both. */
export async function identity({ config, open, say, next }) {
  const ask = async (line) => (say(line), next());
  const site = await ownSite();
  const { verifiedAppId: appId } = config;
  const key = `parley.${appId}`;
  site.serve(`<!doctype html><html lang="en"><title>Site</title>${tagOf({ ...config, appId })}<body></body>`);
  const stored = (page) => page.evaluate((key) => JSON.parse(localStorage.getItem(key)) ?? {}, key);
  const claims = (token) => JSON.parse(Buffer.from(token.split('.')[1], 'base64url'));

  let page = await open({ url: site.url });
  await page.evaluate(() => { window.seen = []; for (const e of ['registered', 'error']) Parley.on(e, (detail) => seen.push([e, detail])); });
  await page.evaluate(() => (Parley.identify({ email: 'ada@example.com', identityToken: 'not a token' }), Parley.open()));
  await page.getByText(/Identity could not be verified/).waitFor();
  const userId = `user-${unique()}`;
  const proof = await ask(`prove ${userId}`);
  await page.evaluate((identityToken) => Parley.identify({ identityToken }), proof);
  await page.getByLabel('Your message').waitFor();
  const [[, fault], [, { chatUserId }]] = await page.evaluate(() => seen);
  assert.equal(fault.status, 400);
  assert.match(chatUserId, /^[0-9a-f-]{36}$/);
  assert.ok(!JSON.stringify(await stored(page)).includes(proof), 'the proof is not stored');
  await page.context().close();
  page = await open({ url: site.url });
  const userHash = await ask(`hash ${userId}`);
  await page.evaluate((identity) => (Parley.identify(identity), Parley.open()), { userId, userHash });
  await page.getByLabel('Your message').waitFor();
  assert.equal(claims((await stored(page)).t).sub, chatUserId, 'the same visitor by hash and by token');
  await page.context().close();

  // A visitor of the form, whom only the token proves: it is renewed in place, on the server's notice and when it is old.
  page = await open({ url: site.url });
  await launcher(page).click();
  await page.getByLabel('Email').fill(`ada${unique()}@example.com`);
  await page.getByRole('button', { name: 'Start the chat' }).click();
  await page.getByLabel('Your message').waitFor();
  const visitor = claims((await stored(page)).t).sub;
  for (const [what, issued, expires] of [['a token that the server says is expiring', 0, 63], ['a token in its last days', -2_000_000, 90_000]]) {
    const token = await ask(`token ${visitor} ${issued} ${expires}`);
    await page.evaluate(([key, t]) => localStorage.setItem(key, JSON.stringify({ ...JSON.parse(localStorage.getItem(key)), t })), [key, token]);
    await page.reload(); // the page does not say who the visitor is
    await page.waitForFunction(() => window.Parley?.open);
    await page.evaluate(() => Parley.open());
    await eventually(`${what} is renewed`, async () => assert.notEqual((await stored(page)).t, token));
    const renewed = claims((await stored(page)).t);
    assert.equal(renewed.sub, visitor, 'for the same visitor');
    assert.ok(renewed.exp > claims(token).exp);
    await page.locator('.p[data-connection=online]').waitFor();
  }
  assert.deepEqual(page.faults, []);
  site.close();
  say('widget identity: proved by token and by hash; two tokens renewed');
}

/** The chat, the settings or the session are not to be had: the visitor is told, nothing is thrown at the page, and it comes back. */
export async function broken({ config, open, say }) {
  const site = await ownSite();
  site.serve(`<!doctype html><html lang="en"><title>Site</title>${tagOf(config)}<body></body>`);
  let page = await open({ url: site.url });
  const failures = () => page.evaluate(() => window.failures);
  const listen = () => page.evaluate(() => { window.failures = []; Parley.on('error', (e) => failures.push(e.code)); });
  const chat = /\/widget\/chat-/;

  // A chat whose bytes are not those of the release does not run.
  const forged = async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, body: `${await answer.text()};window.forged=true` });
  };
  await listen();
  await page.route(chat, forged);
  await launcher(page).click();
  await eventually('it is refused', async () => assert.ok((await failures()).includes('LOAD_FAILED')));
  assert.equal(await page.evaluate(() => window.forged), undefined, 'the forged chat has not run');
  await launcher(page).getByText('!').waitFor();
  await page.unroute(chat, forged);
  await page.context().close();

  // The chat cannot be loaded; the next click tries again. Then the settings cannot.
  page = await open({ url: site.url });
  await listen();
  const away = (route) => route.abort();
  await page.route(chat, away);
  await launcher(page).click();
  await eventually('it is told', async () => assert.ok((await failures()).length > 0));
  await page.unroute(chat, away);
  await page.route(/\/settings\//, away);
  await launcher(page).click();
  await page.getByText('The chat could not be loaded.').waitFor();
  await page.unroute(/\/settings\//, away);
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByLabel('First name').waitFor();
  assert.deepEqual(page.faults, []);
  await page.context().close();

  // The application does not exist.
  site.serve(`<!doctype html><html lang="en"><title>Site</title>${tagOf({ ...config, appId: '00000000-0000-4000-8000-000000000000' })}<body></body>`);
  page = await open({ url: site.url });
  await launcher(page).click();
  await page.getByText('The chat is not available on this site.').waitFor();
  assert.deepEqual(page.faults, []);
  await page.context().close();

  // The server ends the session of a visitor whom it does not know from this page.
  site.serve(`<!doctype html><html lang="en"><title>Site</title>${tagOf(config)}<body></body>`);
  page = await open({ url: site.url });
  await register(page);
  await page.evaluate((key) => localStorage.setItem(key, JSON.stringify({ ...JSON.parse(localStorage.getItem(key)), t: 'no.token.more' })), `parley.${config.appId}`);
  await page.reload();
  await page.waitForFunction(() => window.Parley?.open);
  await page.evaluate(() => Parley.open());
  await page.getByText('Your session has ended. Please introduce yourself again.').waitFor();
  assert.deepEqual(page.faults, []);
  site.close();
  say('widget broken: told, and tried again');
}

/** A bot writes while it thinks: the bubble grows, is read out once, can be stopped, and survives a lost connection. */
export async function streaming({ config, open, say }) {
  const page = await open();
  await register(page);
  const writing = page.locator('[role=log] .writing');
  const announced = page.locator('[aria-live=polite]');
  const words = async () => (await writing.locator('.words').textContent()) ?? '';
  const grows = async () => {
    const before = (await words()).length;
    await eventually('it grows', async () => assert.ok((await words()).length > before));
  };
  const whole = () => page.locator('[role=log] article[data-id] .words').filter({ hasText: 'only that is kept in the history' });

  await write(page, 'stream');
  await writing.waitFor();
  await grows();
  await writing.getByText('language model').waitFor();
  await page.screenshot({ path: join(config.shots, 'widget-streaming.png') });
  assert.doesNotMatch(await announced.textContent(), /word by word/, 'parts are not read out');
  const id = await writing.getAttribute('data-key');
  await whole().waitFor();
  assert.equal(await writing.count(), 0, 'the message takes the place of what was shown');
  assert.deepEqual((await ids(page)).filter((i) => i === id), [id], 'with the same id, once');
  await eventually('the message is read out', async () => assert.match(await announced.textContent(), /^Polly: This answer comes word by word/));

  await write(page, 'stream');
  await writing.waitFor();
  await grows();
  await writing.getByRole('button', { name: 'Stop' }).click();
  await writing.waitFor({ state: 'detached' });
  const [all, stopped] = await Promise.all([whole().first(), rows(page).last().locator('.words')].map((l) => l.textContent()));
  assert.ok(stopped.trim() && all.startsWith(stopped.trim()) && stopped.length < all.length, `stopped: ${stopped}`); // as far as it was

  await write(page, 'stream');
  await writing.waitFor();
  await grows();
  await page.context().setOffline(true);
  await page.locator('.banner').waitFor();
  await page.context().setOffline(false);
  await eventually('all of it after the outage', async () => assert.equal(await whole().count(), 2));
  assert.equal(await writing.count(), 0);

  await write(page, 'stream');
  await writing.waitFor();
  await page.reload();
  await page.waitForFunction(() => window.Parley?.open);
  await launcher(page).click();
  await eventually('all of it after a reload', async () => assert.equal(await whole().count(), 3));
  assert.deepEqual(page.faults, []);
  say('widget: a streamed answer grows, stops, and survives an outage and a reload');
}
