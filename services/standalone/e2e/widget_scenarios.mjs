// Scenarios of the chat widget. widget.mjs runs one exported function.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { build } from 'esbuild';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { abortRoute, axePath, axeRules, eventually, forgeScript, holdPosts, png, unique, write } from './page.mjs';

/** A picture with visible content. */
const picture = readFileSync(fileURLToPath(new URL('../../processor/internal/bot/assets/parley.png', import.meta.url)));

const launcher = (page) => page.getByRole('button', { name: 'Open chat' });
const composer = (page) => page.getByLabel('Your message');
const rows = (page) => page.locator('[role=log] article[data-id]');
const ids = (page) => rows(page).evaluateAll((all) => all.map((e) => e.dataset.id));
const texts = (page, selector = '.row .words') => page.locator(`[role=log] ${selector}`).allTextContents();
const messageWith = (page, text) => page.locator('[role=log]').getByText(text).first();

async function register(page, { email = `ada${unique()}@example.com` } = {}) {
  await launcher(page).click();
  await page.getByLabel('First name').fill('Ada');
  await page.getByLabel('Email').fill(email);
  await page.getByRole('button', { name: 'Start the chat' }).click();
  await rows(page).first().waitFor();
  return email;
}

/** Sends a message from the company, with the curl command that the page shows. */
async function sendFromCompany(page) {
  const command = page.locator('#curl');
  await command.waitFor(); // it appears with the first reply that the widget reports to the page
  assert.match(execFileSync('sh', ['-c', await command.textContent()], { encoding: 'utf8' }), /Message sent successfully/);
}

/** Starts a site. It answers every path with the HTML that was last passed to `serve`. */
async function startSite() {
  let html = '';
  const server = createServer((_, response) => response.setHeader('Content-Type', 'text/html').end(html));
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return { url: `http://127.0.0.1:${server.address().port}/`, serve: (text) => { html = text; }, close: () => server.close() };
}

const tagOf = ({ base, appId }, more = '') => `<script async src="${base}/widget.js" data-app-id="${appId}" ${more}></script>`;
const socketRequests = (page) => page.requestedUrls.filter((u) => u.includes('/socket.io/')).length;

/** A complete session on a site with a strict Content-Security-Policy. */
export async function flow({ config, open, report }) {
  const page = await open();
  const isOwn = (url) => new URL(url).origin === new URL(config.base).origin;
  assert.deepEqual(page.requestedUrls.filter((u) => isOwn(u) && !u.endsWith('favicon.svg')).map((u) => new URL(u).pathname), ['/widget.js'], 'before the first interaction only the loader is requested');
  const stored = () => page.evaluate(async () => [Object.keys(localStorage), Object.keys(sessionStorage), (await indexedDB.databases()).map((d) => d.name), document.cookie]);
  const noData = [[], [], [], ''];
  assert.deepEqual(await stored(), noData, 'nothing is stored before the first interaction');

  await page.evaluate(() => { window.unread = []; Parley.on('unread', (n) => window.unread.push(n)); });
  const start = Date.now();
  await launcher(page).click();
  await page.getByLabel('First name').waitFor();
  report(`widget opened: ${Date.now() - start} ms`);
  assert.equal(await page.evaluate(() => document.querySelector('body > div:last-of-type').shadowRoot.activeElement?.name), 'firstName', 'the focus goes to the first field');
  assert.deepEqual(await stored(), noData, 'nothing is stored on opening');

  const files = page.requestedUrls.filter(isOwn).map((u) => new URL(u).pathname.replace(/(settings\/).*|-[0-9a-f]{8}/, '$1'));
  assert.deepEqual(files.filter((f) => /^\/(widget|settings)/.test(f)).sort(), ['/settings/', '/widget.js', '/widget/chat.js', '/widget/en.js'], 'each file of the first screen is requested once');
  await page.getByLabel('Email').fill('no address');
  await page.getByRole('button', { name: 'Start the chat' }).click();
  await page.getByText('Please fill in this field.').waitFor();
  await page.getByLabel('First name').fill('Ada');
  await page.getByRole('button', { name: 'Start the chat' }).click();
  await page.getByText('Please enter a valid email address.').waitFor(); // the error from the server, at the field
  assert.equal(await page.getByLabel('Email').getAttribute('aria-invalid'), 'true');
  await page.getByLabel('Email').fill(`ada${unique()}@example.com`);
  await page.getByRole('button', { name: 'Start the chat' }).click();
  await messageWith(page, 'Hello, I am Polly, the demo bot.').waitFor();

  const markup = '<img src=x onerror="document.title=\'owned\'"> https://example.com/a';
  await write(page, markup);
  await page.locator('.mine .words').filter({ hasText: 'onerror' }).waitFor();
  assert.equal(await page.locator('.mine .words a').first().getAttribute('rel'), 'noopener noreferrer nofollow');
  await write(page, 'menu');
  await page.getByRole('button', { name: 'Show me a picture' }).click();
  await page.locator('.t-image img').last().waitFor();
  await page.locator('.choice.taken').waitFor(); // the chosen answer is marked
  await page.getByRole('button', { name: 'What time is it?' }).click(); // another one can be chosen
  await messageWith(page, /^Your message came at/).waitFor();
  assert.deepEqual(await page.locator('.choice.taken').allTextContents(), ['What time is it? (Chosen)']);
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
  await messageWith(page, 'I got dot.png').waitFor();

  await sendFromCompany(page);
  await messageWith(page, 'Hello from the company').waitFor();
  const token = await page.evaluate((key) => JSON.parse(localStorage.getItem(key)).t, `parley.${config.appId}`);
  await eventually('the message is marked as read on the server', async () => {
    const { headers } = await fetch(`${config.base}/message?limit=1`, { headers: { Authorization: `Bearer ${token}` } });
    assert.equal(headers.get('parley-unread'), '0');
  });

  assert.deepEqual(await page.evaluate(() => window.unread), [], 'a message that arrives in view is never unread');
  const marks = await page.locator('.mine .mark').allTextContents();
  assert.deepEqual([...new Set(marks)], ['Delivered'], 'the answers of a bot do not mean that somebody has read the message');

  const before = await ids(page);
  await page.reload();
  await page.waitForFunction(() => window.Parley?.open);
  await launcher(page).click();
  await messageWith(page, 'Hello from the company').waitFor();
  await eventually('the chat shows the same messages after a reload', async () => assert.deepEqual(await ids(page), before));
  assert.deepEqual(await page.evaluate(() => window.violations), [], 'the Content-Security-Policy is not violated');
  const foreign = page.requestedUrls.filter((u) => !isOwn(u) && new URL(u).origin !== new URL(config.site).origin && !u.startsWith('data:'));
  assert.deepEqual(foreign, [], 'nothing is requested from other hosts');
  assert.equal(await page.evaluate(() => document.querySelectorAll('[style]').length + document.querySelector('body > div:last-of-type').shadowRoot.querySelectorAll('[style]').length), 0, 'no element has an inline style');

  await page.getByRole('button', { name: 'More options' }).click();
  await page.getByRole('button', { name: 'Delete this chat from this browser' }).click();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByLabel('First name').waitFor();
  await eventually('everything is deleted from the browser', async () => assert.deepEqual(await stored(), noData));
  assert.deepEqual(page.errors, []);
  report('widget policy violations: 0, requests to other hosts: 0');
}

/** A history with messages of every type, including an unknown type and pictures on other hosts. */
function sampleHistory(base) {
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

/** Answers history requests with these messages, in pages. */
async function withHistory(page, all) {
  await page.route(/\/message\?/, (route) => {
    const query = new URL(route.request().url()).searchParams;
    const end = query.has('before') ? all.findIndex((m) => m.id === query.get('before')) : all.length;
    const from = Math.max(0, end - Number(query.get('limit')));
    return route.fulfill({ json: all.slice(from, end), headers: { ...cors, ...(from && { Link: `<?before=${all[from].id}>; rel="next"` }) } });
  });
  await page.route(/\/chats\?/, (route) => route.fulfill({ json: [], headers: cors })); // no earlier chat
  await page.route(/\/read$/, (route) => route.fulfill({ status: 204, headers: cors }));
}

/** Checks every screen with axe and takes a screenshot: in both text directions, light and dark, on a desktop and on a phone. */
export async function screens({ config, open, report }) {
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
            await withHistory(p, sampleHistory(config.base));
            await p.addInitScript((code) => {
              window.Parley = [['setLanguage', code]];
            }, language);
          },
        });
        await page.addScriptTag({ path: axePath });
        const checkScreen = async (name) => {
          await page.evaluate(() => document.fonts.ready);
          const result = await page.evaluate((runOnly) => axe.run(document.querySelector('body > div:last-of-type'), { runOnly }), axeRules);
          audited++;
          for (const v of result.violations) {
            findings += v.nodes.length;
            for (const n of v.nodes) report(`axe ${name} ${language} ${scheme}: ${v.id}: ${n.target.flat().join(' ')}: ${n.any.concat(n.all, n.none).map((c) => c.message).join('; ')}`);
          }
          const file = ['widget', name, rtl ? 'rtl' : '', scheme === 'dark' ? 'dark' : '', phone ? 'phone' : ''].filter(Boolean).join('-');
          const clip = { x: rtl ? 0 : 620, y: 0, width: 480, height: 850 };
          await page.screenshot({ path: join(config.shots, `${file}.png`), ...(!phone && !/launcher|chat/.test(name) && { clip }) });
        };
        await checkScreen('launcher');
        await page.evaluate(() => Parley.open());
        await page.locator('form.card input').first().waitFor();
        await checkScreen('form');
        await page.locator('form.card .primary').click();
        await page.locator('form.card .error').first().waitFor();
        await checkScreen('form-errors');
        await page.locator('input[name=firstName]').fill('Ada');
        await page.locator('input[name=email]').fill(`ada${unique()}@example.com`);
        await page.locator('form.card .primary').click();
        await page.locator('.t-future_type').waitFor();
        await checkScreen('chat');
        const log = page.locator('[role=log]');
        await log.evaluate((e) => { e.scrollTop = 0; });
        await page.locator('.t-interactive').waitFor();
        await checkScreen('types');
        await page.locator('.t-carousel').scrollIntoViewIfNeeded();
        await page.locator('.t-carousel img').first().waitFor();
        await checkScreen('cards');
        await page.locator('.t-audio').scrollIntoViewIfNeeded();
        await page.locator('.t-image img').first().waitFor();
        await checkScreen('files');
        await page.locator('.thumb').first().click();
        await page.locator('.preview img').waitFor();
        await checkScreen('preview');
        await page.keyboard.press('Escape');
        await page.locator('.header .round').first().click();
        await page.locator('.menu').waitFor();
        await checkScreen('menu');
        await page.locator('.menu .item').last().click();
        await page.locator('.danger').waitFor();
        await checkScreen('forget');
        await page.keyboard.press('Escape');
        assert.equal(await page.locator('.menu').count(), 0, 'Escape also closes the menu while it asks for confirmation');
        await page.locator('input[type=file]').first().setInputFiles([{ name: 'parcel.png', mimeType: 'image/png', buffer: picture }, { name: 'receipt.pdf', mimeType: 'application/pdf', buffer: Buffer.alloc(70_000, 120) }]);
        await page.locator('.staged li').last().waitFor();
        await page.locator('textarea').fill('The parcel and the receipt');
        await checkScreen('staged');
        const refuse = (route) => route.fulfill({ status: 413, headers: cors, json: { statusCode: 413, code: 'FILE_QUOTA', message: 'no' } });
        await page.route(/\/message$/, refuse);
        await page.locator('.sendbutton').click();
        await page.locator('.pending.bad').last().waitFor();
        await eventually('both files are rejected', async () => assert.equal(await page.locator('.pending.bad').count(), 2));
        await checkScreen('refused');
        for (let left = 2; left > 0; left--) {
          await page.locator('.pending.bad .textbutton').last().click();
          await eventually(`${left - 1} rejected files are left`, async () => assert.equal(await page.locator('.pending.bad').count(), left - 1));
        }
        await page.unroute(/\/message$/, refuse);
        await page.context().setOffline(true);
        await page.locator('.banner').waitFor();
        await page.locator('#parley-text').fill('Written without a connection');
        await page.locator('.sendbutton').click();
        await page.locator('.pending').waitFor();
        await checkScreen('offline');
        assert.ok(page.requestedUrls.every((u) => !u.includes('third.example')), 'no picture is requested from other hosts');
        if (phone) {
          const box = await page.locator('.p').boundingBox();
          assert.deepEqual([box.x, box.y, box.width], [0, 0, 390], 'the chat fills the screen of a phone');
          assert.ok((await page.locator('.p button:visible, .p input:visible, .p textarea').evaluateAll((all) => all.filter((e) => !e.disabled && e.getBoundingClientRect().width > 0 && (e.offsetWidth < 24 || e.offsetHeight < 24)).map((e) => e.outerHTML))).length === 0, 'touch targets have at least 24 px');
          assert.equal(await page.locator('textarea').evaluate((e) => parseFloat(getComputedStyle(e).fontSize)), 16);
        }
        assert.equal(await page.locator('.p').getAttribute('dir'), rtl ? 'rtl' : 'ltr');

        // The next page load counts all messages as unread. Its stored stream position is removed, because the stream contains another greeting.
        await page.evaluate((key) => {
          Parley.destroy();
          const { r, p, ...rest } = JSON.parse(localStorage.getItem(key));
          localStorage.setItem(key, JSON.stringify({ ...rest, n: 1 }));
        }, `parley.${config.appId}`);
        await page.route(/\/message$/, refuse); // otherwise the bot answers the message written offline, and the answer is unread too
        await page.context().setOffline(false);
        await page.reload();
        await page.addScriptTag({ path: axePath });
        await page.getByRole('button', { name: /: 11$/ }).waitFor();
        await checkScreen('launcher-unread');
        assert.deepEqual(page.errors, []);
        await page.context().close();
      }));
    }
  }
  report(`widget axe: ${findings} findings on ${audited} screens`);
  assert.equal(findings, 0);
}

/** A chat with the keyboard only, zoomed, and with forced colours. */
export async function keyboard({ open, report }) {
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
  await eventually('the answer is announced', async () => assert.match(await page.locator('[aria-live=polite]').textContent(), /^Polly: Here is what I can show you/));
  assert.equal(await page.locator('[aria-live=polite], [aria-live=assertive], [role=alert]').count(), 1, 'there is one live region');
  for (let i = 0; i < 40 && (await focused()) !== 'Messages'; i++) await page.keyboard.press('Shift+Tab');
  await page.keyboard.press('ArrowUp'); // the newest message
  await page.keyboard.press('Enter'); // moves the focus into the message
  await eventually('Enter moves the focus into the message', async () => assert.match(await focused(), /Show me a picture/));
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab');
  assert.match(await focused(), /What time is it/);
  await page.keyboard.press('Enter');
  await messageWith(page, /^Your message came at/).waitFor();
  await page.keyboard.press('Escape'); // moves the focus out of the message
  await tabTo(/^Your message$/);
  const releasePost = await holdPosts(page, /\/message$/);
  await page.keyboard.type('help');
  await page.keyboard.press('Enter');
  await page.locator('.pending').waitFor();
  for (let i = 0; i < 40 && (await focused()) !== 'Messages'; i++) await page.keyboard.press('Shift+Tab');
  await page.keyboard.press('End');
  await eventually('the message that is sent has the focus', async () => assert.match(await focused(), /Sending/));
  releasePost();
  await page.locator('.pending').waitFor({ state: 'detached' });
  assert.match(await focused(), /^You, /, `the sent message has the focus of the pending one, but ${await focused()} has it`);
  await tabTo(/^More options/);
  await page.keyboard.press('Enter');
  await tabTo(/^Delete this chat/);
  await page.keyboard.press('Enter');
  await eventually('Cancel has the focus in the confirmation', async () => assert.equal(await focused(), 'Cancel'));
  await page.keyboard.press('Escape');
  await eventually('the focus is restored after the confirmation', async () => assert.equal(await focused(), 'More options'));
  await page.keyboard.press('Enter');
  await page.locator('.menu').waitFor();
  await tabTo(/^Messages$/);
  assert.equal(await page.locator('.menu').count(), 0, 'the menu closes when the focus leaves it');
  await page.keyboard.press('Escape');
  await eventually('Escape closes the chat and restores the focus', async () => assert.match(await focused(), /^Open chat/));
  await page.keyboard.press('Enter');
  await tabTo(/^Close chat/);
  await page.getByRole('button', { name: 'Close chat' }).first().focus(); // the launcher;
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'hidden' });
  assert.match(await focused(), /^Open chat/, 'Escape on the launcher closes the chat');
  assert.deepEqual(page.errors, []);
  report('widget keyboard: a complete chat');
}

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

/** Tabs of one browser share a socket and their state. The outbox survives a reload without a connection. */
export async function tabs({ open, report }) {
  const one = await open();
  await register(one);
  // Drop the data events that the second tab broadcasts: they may arrive before its write to localStorage is visible to the first tab.
  const dropBroadcasts = () => {
    const { postMessage } = BroadcastChannel.prototype;
    BroadcastChannel.prototype.postMessage = function (event) {
      if (!window.dropsBroadcasts || ['hello', 'ping', 'pong'].includes(event.kind)) postMessage.call(this, event);
    };
    window.dropsBroadcasts = true;
  };
  const two = await open({ context: one.context(), before: (p) => p.addInitScript(dropBroadcasts) });
  await two.evaluate(() => Parley.open());
  await rows(two).first().waitFor();
  await write(two, 'from the second tab');
  await messageWith(two, 'You wrote “from the second tab”').waitFor();
  await messageWith(one, 'You wrote “from the second tab”').waitFor();
  await eventually('both tabs show the same messages', async () => assert.deepEqual(await ids(one), await ids(two)));
  await two.evaluate(() => { window.dropsBroadcasts = false; });
  assert.ok(socketRequests(one) > 0 && socketRequests(two) === 0, 'both tabs share one socket');

  await two.evaluate(() => Parley.close());
  await one.evaluate(() => Parley.close());

  // The tab with the socket closes, and the other tab takes over.
  await one.close();
  await two.evaluate(() => Parley.open());
  await eventually('the second tab opens a socket', async () => assert.ok(socketRequests(two) > 0));
  await write(two, 'after the first tab has closed');
  await messageWith(two, 'You wrote “after the first tab has closed”').waitFor();

  // Messages written while the server is unreachable survive a reload and are sent once, in order.
  await two.context().route(/\/(message|socket\.io)/, abortRoute);
  for (const text of ['first offline', 'second offline', 'third offline']) await write(two, text);
  await eventually('three messages are pending', async () => assert.equal(await two.locator('.pending').count(), 3));
  await two.clock.install({ time: Date.now() + 3600_000 }); // the reload happens an hour later
  await two.reload();
  await two.waitForFunction(() => window.Parley?.open);
  await two.evaluate(() => Parley.open());
  await eventually('three messages are still pending after the reload', async () => assert.equal(await two.locator('.pending').count(), 3));
  await two.context().unroute(/\/(message|socket\.io)/, abortRoute);
  await two.evaluate(() => dispatchEvent(new Event('online')));
  await messageWith(two, 'You wrote “third offline”').waitFor();
  const sent = (await texts(two, '.mine .words')).filter((t) => t.endsWith(' offline'));
  assert.deepEqual(sent, ['first offline', 'second offline', 'third offline']);

  // A reply that arrives before the history is reported to the page. The history is requested until it is there.
  const busy = (route) => (route.request().method() === 'GET' ? route.fulfill({ status: 503, headers: cors, json: {} }) : route.fallback());
  await two.route(/\/message\?/, busy);
  await two.reload();
  await two.waitForFunction(() => window.Parley?.open);
  await two.evaluate(() => Parley.open());
  await two.locator('.p[data-connection=online]').waitFor();
  await write(two, 'before the history');
  await messageWith(two, 'You wrote “before the history”').waitFor();
  await two.locator('#curl').waitFor();
  assert.equal(await messageWith(two, 'You wrote “third offline”').count(), 0);
  await two.unroute(/\/message\?/, busy);
  await messageWith(two, 'You wrote “third offline”').waitFor();

  // Messages received while the chat is closed are counted on the launcher and in the title.
  await eventually('the replies are read', async () => assert.equal(await two.getByRole('button', { name: /^Close chat: \d/ }).count(), 0));
  await two.evaluate(() => Parley.close());
  const title = await two.title();
  await sendFromCompany(two);
  await two.getByRole('button', { name: 'Open chat: 1' }).waitFor();
  await eventually('the title shows one unread message', async () => assert.equal(await two.title(), `(1) ${title}`));
  await two.reload(); // the widget loads a stored session with unread messages without interaction
  await two.getByRole('button', { name: 'Open chat: 1' }).click();
  await eventually('the title shows no count after reading', async () => assert.equal(await two.title(), title));

  // Ending the session in one tab ends it in all tabs and deletes all stored data.
  const three = await open({ context: two.context() });
  await three.evaluate(() => Parley.open());
  await messageWith(three, 'You wrote “third offline”').waitFor();
  await three.evaluate(() => Parley.forget());
  for (const page of [two, three]) await page.getByLabel('First name').waitFor();
  await eventually('nothing is stored', async () => assert.deepEqual(await two.evaluate(() => Object.keys(localStorage)), []));
  // A session started in one tab starts in the other tab.
  await two.getByLabel('First name').fill('Ada');
  await two.getByLabel('Email').fill(`ada${unique()}@example.com`);
  await two.getByRole('button', { name: 'Start the chat' }).click();
  await rows(three).first().waitFor();
  assert.deepEqual([...two.errors, ...three.errors], []);
  report('widget tabs: one socket, one state');
}

/** A history of 2,000 messages. */
export async function scale({ config, open, report }) {
  const start = Date.parse('2026-01-01T10:00:00Z');
  const all = Array.from({ length: 2000 }, (_, n) => ({
    id: `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`, createdAt: new Date(start + n * 400_000).toISOString(), type: 'TEXT',
    data: { text: `message ${n} ${'with some words '.repeat(n % 7)}` }, nameOfSender: 'Polly', isFromSupport: n % 3 !== 0,
  }));
  const page = await open({ url: `${config.base}/demo`, before: (p) => withHistory(p, all) });
  await register(page);
  await messageWith(page, 'message 1999').waitFor();
  const log = page.locator('[role=log]');
  const oldestRendered = () => page.evaluate(() => document.querySelector('body > div:last-of-type').shadowRoot.querySelector('[role=log] article').dataset.id);
  for (let oldest = await oldestRendered(); oldest > all[0].id;) {
    // The scroll of one round may also load the page of the next round, so each round starts from the oldest id of the round before.
    await eventually('older messages are rendered', async () => {
      await log.evaluate((e) => { if (e.scrollTop > 0) e.scrollTop = 0; });
      const now = await oldestRendered();
      assert.ok(now < oldest, `got ${now}, want less than ${oldest}`);
      oldest = now;
    });
  }
  await log.evaluate((e) => { e.scrollTop = 0; });
  await messageWith(page, 'This is the beginning of the conversation.').waitFor();
  assert.ok((await rows(page).count()) < 120, `only a few of the 2,000 messages are in the document: ${await rows(page).count()}`);
  assert.deepEqual((await texts(page)).slice(0, 2).map((t) => t.trim().split(' with')[0]), ['message 0', 'message 1']);

  // The visible messages keep their position while the visitor types.
  await log.evaluate((e) => { e.scrollTop = e.scrollHeight / 2; });
  const firstVisible = () => page.evaluate(() => {
    const root = document.querySelector('body > div:last-of-type').shadowRoot;
    const top = root.querySelector('[role=log]').getBoundingClientRect().top;
    const row = [...root.querySelectorAll('[role=log] article[data-id]')].find((e) => e.getBoundingClientRect().top > top + 100);
    return [row.dataset.id, Math.round(row.getBoundingClientRect().top - top)];
  });
  await new Promise((done) => setTimeout(done, 300)); // the adjacent pages have been measured
  const anchor = await firstVisible();
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
  report(`widget input latency with 2,000 messages: ${latency.toFixed(1)} ms (median of 30)`);
  assert.ok(latency < 500, `the messages do not slow down typing: ${latency} ms`); // about 50 ms on an idle machine
  const now = await firstVisible();
  assert.ok(now[0] === anchor[0] && Math.abs(now[1] - anchor[1]) <= 2, `the scroll position changed: got ${now}, want ${anchor}`);
  await page.getByRole('button', { name: /Go to the newest|new message/ }).click();
  await messageWith(page, 'message 1999').waitFor();
  assert.deepEqual(page.errors, []);
}

/** Gateways and the network fail and recover: no message is lost or duplicated, and the order is kept. The Go test sends the commands. */
export async function comingBack({ open, report, nextCommand }) {
  const page = await open();
  await register(page);
  await write(page, 'before');
  await messageWith(page, 'You wrote “before”').waitFor();
  const wanted = ['before'];
  for (let round = 0; ; round++) {
    report(`ready ${round}`);
    const command = await nextCommand();
    if (command === 'end') break;
    if (command === 'offline') await page.context().setOffline(true);
    const text = `round ${round}`;
    await write(page, text);
    wanted.push(text);
    if (command === 'offline') {
      await page.getByText('You are offline.').first().waitFor();
      await page.context().setOffline(false);
    }
    await messageWith(page, `You wrote “${text}”`).waitFor();
  }
  const mine = (await texts(page, '.mine .words')).map((t) => t.trim());
  assert.deepEqual(mine, wanted, 'each message is shown once, in order');
  const answers = (await texts(page, '.theirs .words')).filter((t) => t.startsWith('You wrote')).map((t) => /“(.*?)”/.exec(t)[1]);
  assert.deepEqual(answers, wanted, 'each answer is shown once, in order');
  assert.deepEqual(page.errors, []);
  report(`widget coming back: ${wanted.length} of ${wanted.length} messages, 0 lost, 0 duplicated`);
}

/** The tab with the socket crashes or hangs: another tab takes over, and no message is lost. */
export async function takeover({ open, report }) {
  const one = await open();
  await register(one);
  const two = await open({ context: one.context() });
  await two.evaluate(() => Parley.open());
  await rows(two).first().waitFor();
  await eventually('the first tab has the socket', async () => assert.ok(socketRequests(one) > 0 && socketRequests(two) === 0));
  await write(two, 'before');
  await messageWith(two, 'You wrote “before”').waitFor();

  // A reply is published while no tab has a socket. It is in the stream, but not in the history yet.
  const history = await two.evaluate(async () => {
    const { t } = JSON.parse(localStorage.getItem(Object.keys(localStorage).find((k) => /^parley\.[^.]+$/.test(k))));
    return (await fetch(`${new URL(document.querySelector('script[data-app-id]').src).origin}/message?limit=50`, { headers: { Authorization: `Bearer ${t}` } })).json();
  });
  const stale = (route) => (route.request().method() === 'GET' ? route.fulfill({ json: history, headers: cors }) : route.fallback());
  await two.route(/\/message\?/, stale);
  await two.route(/\/socket\.io\//, abortRoute);
  const crashed = new Promise((done) => one.once('crash', done));
  void (await one.context().newCDPSession(one)).send('Page.crash').catch(() => {});
  await crashed;
  await eventually('the second tab tries to connect', async () => assert.ok(socketRequests(two) > 0));
  await sendFromCompany(two);
  await two.unroute(/\/socket\.io\//, abortRoute);
  await messageWith(two, 'Hello from the company').waitFor();
  await two.unroute(/\/message\?/, stale);

  // A hanging tab keeps its lock until another tab has a message to send and steals the lock.
  const three = await open({ context: two.context() });
  await three.evaluate(() => Parley.open());
  await messageWith(three, 'Hello from the company').waitFor();
  let hangs = true;
  const woken = two.evaluate(() => {
    const end = Date.now() + 6_000;
    while (Date.now() < end);
  }).then(() => { hangs = false; });
  await write(three, 'while the leader hangs');
  await messageWith(three, 'You wrote “while the leader hangs”').waitFor();
  assert.ok(socketRequests(three) > 0, 'the third tab has a socket');
  report(`widget takeover: ${hangs ? 'while the other tab hung' : 'after the other tab had woken up'}`);
  await woken;
  await write(two, 'after waking');
  await messageWith(two, 'You wrote “after waking”').waitFor();
  await messageWith(three, 'You wrote “after waking”').waitFor();
  await eventually('both tabs show the same messages', async () => assert.deepEqual(await ids(two), await ids(three)));
  assert.deepEqual((await texts(two, '.mine .words')).map((t) => t.trim()), ['before', 'while the leader hangs', 'after waking'], 'each message is shown once, in order');
  assert.deepEqual([...two.errors, ...three.errors], []);
}

/** A message plays one sound regardless of the number of tabs, and none after sound is turned off in one tab. */
export async function sound({ open, report }) {
  const countTones = (p) => p.addInitScript(() => {
    window.tones = 0;
    const { createOscillator } = AudioContext.prototype;
    AudioContext.prototype.createOscillator = function () {
      window.tones++;
      return createOscillator.call(this);
    };
  });
  const one = await open({ before: countTones });
  await register(one);
  const two = await open({ context: one.context(), before: countTones });
  await launcher(two).click();
  await rows(two).first().waitFor();
  const soundsPlayed = async () => (await Promise.all([one, two].map((p) => p.evaluate(() => window.tones / 2)))).reduce((a, b) => a + b);
  const unread = async (n) => {
    for (const page of [one, two]) await page.getByRole('button', { name: `Open chat: ${n}` }).waitFor();
  };
  await write(two, 'in sight');
  for (const page of [one, two]) await messageWith(page, 'You wrote “in sight”').waitFor();
  assert.equal(await soundsPlayed(), 0, 'a visible message plays no sound');
  for (const page of [one, two]) await page.evaluate(() => Parley.close());
  await sendFromCompany(two);
  await unread(1);
  await eventually('one sound is played', async () => assert.equal(await soundsPlayed(), 1));

  await two.evaluate(() => Parley.open());
  await two.getByRole('button', { name: 'More options' }).click();
  await two.getByRole('button', { name: 'Turn sound off' }).click();
  await two.getByRole('button', { name: 'Turn sound on' }).waitFor();
  await two.evaluate(() => Parley.close());
  await one.evaluate(() => Parley.open());
  await one.getByRole('button', { name: 'More options' }).click();
  await one.getByRole('button', { name: 'Turn sound on' }).waitFor(); // off in this tab too
  await one.evaluate(() => Parley.close());
  await launcher(one).waitFor();
  await sendFromCompany(two);
  await unread(1);
  assert.equal(await soundsPlayed(), 1, 'no sound is played when sound is off');
  await two.reload();
  await two.getByRole('button', { name: 'Open chat: 1' }).click();
  await two.getByRole('button', { name: 'More options' }).click();
  await two.getByRole('button', { name: 'Turn sound on' }).waitFor(); // the setting is stored
  assert.deepEqual([...one.errors, ...two.errors], []);
  report('widget sound: one for two tabs, none when off');
}

/** Files are dropped, pasted, picked, cancelled, rejected and sent again. */
export async function files({ open, report }) {
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
  await eventually('the drop hint disappears when the file is dragged away', async () => assert.equal(await page.locator('.drop').count(), 0));
  await panel.dispatchEvent('dragenter', dropped);
  assert.equal(await panel.evaluate((e, dataTransfer) => e.dispatchEvent(new DragEvent('dragover', { dataTransfer, bubbles: true, cancelable: true })), dropped.dataTransfer), false, 'a file may be dropped');
  await panel.dispatchEvent('drop', dropped);
  await page.locator('.staged').getByText('dropped.txt').waitFor();
  assert.equal(await page.locator('.drop').count(), 0);

  const pasted = await transfer('pasted.txt', 'text/plain', 30);
  await composer(page).evaluate((e, clipboardData) => e.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true })), pasted);
  await page.locator('.staged').getByText('pasted.txt').waitFor();
  const pick = async (...names) => {
    const [chooser] = await Promise.all([page.waitForEvent('filechooser'), page.getByRole('button', { name: 'Attach files' }).click()]);
    await chooser.setFiles(names.map((name) => ({ name, mimeType: 'text/plain', buffer: Buffer.alloc(name.startsWith('large') ? 400_000 : 10, 120) })));
  };
  await pick('unwanted.txt');
  await page.getByRole('button', { name: 'Remove unwanted.txt' }).click();
  await write(page, 'two files');
  for (const name of ['dropped.txt', 'pasted.txt']) await page.locator('.mine.t-file').filter({ hasText: name }).waitFor();
  assert.equal(await page.locator('.mine.t-file').filter({ hasText: 'two files' }).count(), 1, 'the text is the caption of one file');
  assert.equal(await page.locator('.mine').filter({ hasText: 'unwanted' }).count(), 0);

  // A slow upload shows its progress and can be cancelled.
  const client = await page.context().newCDPSession(page);
  const limitUpload = (bytes) => client.send('Network.emulateNetworkConditions', { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: bytes });
  await client.send('Network.enable');
  await limitUpload(40_000);
  await pick('large.txt');
  await page.getByRole('button', { name: 'Send', exact: true }).click();
  await eventually('the upload shows progress', async () => assert.ok((await page.locator('progress').evaluate((e) => e.value)) > 0));
  await write(page, 'after the file');
  await page.getByRole('button', { name: 'Cancel sending large.txt' }).click();
  await limitUpload(-1);
  await messageWith(page, 'You wrote “after the file”').waitFor();
  assert.equal(await page.locator('.mine').filter({ hasText: 'large.txt' }).count(), 0, 'the cancelled file is removed');

  // A file that the server rejects stays in the chat, even after a reload, until the visitor sends it again.
  const refuse = (route) => (route.request().method() === 'POST' ? route.fulfill({ status: 413, headers: cors, json: { statusCode: 413, code: 'FILE_QUOTA', message: 'no' } }) : route.fallback());
  await page.context().route(/\/message$/, refuse);
  await pick('refused.txt');
  await page.getByRole('button', { name: 'Send', exact: true }).click();
  await page.locator('.bad').filter({ hasText: 'refused.txt' }).waitFor();
  await page.reload();
  await page.waitForFunction(() => window.Parley?.open);
  await page.evaluate(() => Parley.open());
  await page.locator('.bad').filter({ hasText: 'refused.txt' }).waitFor();
  await page.context().unroute(/\/message$/, refuse);
  await page.getByRole('button', { name: 'Send again' }).click();
  await page.locator('.mine.t-file:not(.pending)').filter({ hasText: 'refused.txt' }).waitFor();
  await messageWith(page, 'I got refused.txt').waitFor();
  assert.equal(await page.locator('.mine').filter({ hasText: 'refused.txt' }).count(), 1, 'the file is shown once');
  await eventually('no file is left in the outbox', async () => assert.deepEqual(await page.evaluate(async () => {
    const [{ name }] = await indexedDB.databases();
    const db = await new Promise((done) => { const r = indexedDB.open(name); r.onsuccess = () => done(r.result); });
    const keys = await new Promise((done) => { const r = db.transaction('files').objectStore('files').getAllKeys(); r.onsuccess = () => done(r.result); });
    db.close();
    return keys;
  }), []));
  assert.deepEqual(page.errors, []);
  report('widget files: dropped, pasted, picked, cancelled, sent again');
}

/** On a phone the keyboard covers half of the screen, and does not cover the chat. */
export async function phone({ config, open, report }) {
  const page = await open({
    url: `${config.base}/demo`, viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true,
    before: (p) => p.addInitScript(() => {
      // Headless Chromium has no on-screen keyboard, so the visual viewport is faked.
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
  assert.notEqual(await page.evaluate(() => document.querySelector('body > div:last-of-type').shadowRoot.activeElement?.tagName), 'INPUT', 'opening the chat does not focus an input, which would show the keyboard');
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
  await messageWith(page, 'You wrote “line 5”').waitFor();
  await page.evaluate(() => keyboard(420, 60));
  const panel = async () => {
    const { x, y, width, height } = await page.locator('.p').boundingBox();
    return [x, y, width, height];
  };
  await eventually('the chat fills the screen above the keyboard', async () => assert.deepEqual(await panel(), [0, 60, 390, 420]));
  const area = await composer(page).boundingBox();
  assert.ok(area.y >= 60 && area.y + area.height <= 480, `the composer is above the keyboard: ${JSON.stringify(area)}`);
  await eventually('the newest message is visible', async () => {
    const { y, height } = await rows(page).last().boundingBox();
    assert.ok(y > 60 && y + height <= area.y + 1, `${y} ${height}`);
  });
  await page.evaluate(() => keyboard(undefined, undefined));
  await eventually('the chat fills the screen again', async () => assert.deepEqual(await panel(), [0, 0, 390, 780]));
  await page.evaluate(() => Object.defineProperty(visualViewport, 'scale', { value: 2, configurable: true }));
  await page.evaluate(() => keyboard(390, 100)); // zoomed with two fingers
  await eventually('zooming does not resize the chat', async () => assert.deepEqual(await panel(), [0, 0, 390, 780]));
  await page.locator('.header').getByRole('button', { name: 'Close chat' }).tap();
  await launcher(page).waitFor();
  assert.deepEqual(page.errors, []);
  report('widget phone: the composer stays above the keyboard');
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
  const folder = fileURLToPath(new URL('../../../web/widget/package', import.meta.url));
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

/** The company's server proves the identity of visitors, and tokens are renewed before they expire. The Go test signs the proofs and tokens. */
export async function identity({ config, open, report, nextCommand }) {
  const request = async (line) => (report(line), nextCommand());
  const site = await startSite();
  const { verifiedAppId: appId } = config;
  const key = `parley.${appId}`;
  site.serve(`<!doctype html><html lang="en"><title>Site</title>${tagOf({ ...config, appId })}<body></body>`);
  const stored = (page) => page.evaluate((key) => JSON.parse(localStorage.getItem(key)) ?? {}, key);
  const claims = (token) => JSON.parse(Buffer.from(token.split('.')[1], 'base64url'));

  let page = await open({ url: site.url });
  await page.evaluate(() => { window.seen = []; for (const e of ['registered', 'error']) Parley.on(e, (detail) => seen.push([e, detail])); });
  const consoleErrors = [];
  page.on('console', (m) => m.type() === 'error' && m.text().startsWith('Parley') && consoleErrors.push(m.text()));
  const refusal = page.getByRole('alert').filter({ hasText: 'The chat could not be loaded.' });
  await page.evaluate(() => (Parley.identify({ userId: '1', userHash: '0'.repeat(64) }), Parley.open()));
  await refusal.waitFor();
  await page.evaluate(() => (Parley.close(), Parley.open())); // registers again
  await eventually('the second registration is refused', async () => assert.equal((await page.evaluate(() => seen)).length, 2));
  await refusal.waitFor();
  assert.equal(await page.getByText(/Identity|userHash/).count(), 0, 'the visitor is not told what only the developer can correct');
  assert.deepEqual(consoleErrors, [`Parley ${appId} on ${new URL(site.url).origin}: IDENTITY_NOT_VERIFIED Identity could not be verified: userHash does not prove the userId`]);
  const userId = `user-${unique()}`;
  const proof = await request(`prove ${userId}`);
  await page.evaluate((identityToken) => Parley.identify({ identityToken }), proof);
  await page.getByLabel('Your message').waitFor();
  const [[, error], , [, { chatUserId }]] = await page.evaluate(() => seen);
  assert.equal(error.status, 400);
  assert.match(chatUserId, /^[0-9a-f-]{36}$/);
  assert.ok(!JSON.stringify(await stored(page)).includes(proof), 'the proof is not stored');
  await page.context().close();
  page = await open({ url: site.url });
  const userHash = await request(`hash ${userId}`);
  await page.evaluate((identity) => (Parley.identify(identity), Parley.open()), { userId, userHash });
  await page.getByLabel('Your message').waitFor();
  assert.equal(claims((await stored(page)).t).sub, chatUserId, 'the hash and the token identify the same visitor');
  assert.ok(!JSON.stringify(await stored(page)).includes(userHash), 'the hash is not stored');
  await page.context().close();

  // A visitor who registered with the form is identified only by the token. The widget renews it on the server's notice and when it is old.
  page = await open({ url: site.url });
  await launcher(page).click();
  await page.getByLabel('Email').fill(`ada${unique()}@example.com`);
  await page.getByRole('button', { name: 'Start the chat' }).click();
  await page.getByLabel('Your message').waitFor();
  const visitor = claims((await stored(page)).t).sub;
  for (const [what, issued, expires] of [['a token with an expiry notice from the server', 0, 63], ['a token close to its expiry', -2_000_000, 90_000]]) {
    const token = await request(`token ${visitor} ${issued} ${expires}`);
    await page.evaluate(([key, t]) => localStorage.setItem(key, JSON.stringify({ ...JSON.parse(localStorage.getItem(key)), t })), [key, token]);
    await page.reload(); // the page does not identify the visitor
    await page.waitForFunction(() => window.Parley?.open);
    await page.evaluate(() => Parley.open());
    await eventually(`${what} is renewed`, async () => assert.notEqual((await stored(page)).t, token));
    const renewed = claims((await stored(page)).t);
    assert.equal(renewed.sub, visitor, 'the renewed token is for the same visitor');
    assert.ok(renewed.exp > claims(token).exp);
    await page.locator('.p[data-connection=online]').waitFor();
  }
  assert.deepEqual(page.errors, []);
  site.close();
  report('widget identity: proved by token and by hash; two tokens renewed');
}

/** The chat, the settings or the session are unavailable: the widget shows an error, throws none at the page, and recovers. */
export async function broken({ config, open, report }) {
  const site = await startSite();
  site.serve(`<!doctype html><html lang="en"><title>Site</title>${tagOf(config)}<body></body>`);
  let page = await open({ url: site.url });
  const failures = () => page.evaluate(() => window.failures);
  const listen = () => page.evaluate(() => { window.failures = []; Parley.on('error', (e) => failures.push(e.code)); });
  const chat = /\/widget\/chat-/;

  // A modified chat script does not run.
  await listen();
  await page.route(chat, forgeScript);
  await launcher(page).click();
  await eventually('loading the modified chat fails', async () => assert.ok((await failures()).includes('LOAD_FAILED')));
  assert.equal(await page.evaluate(() => window.forged), undefined, 'the modified chat has not run');
  await launcher(page).getByText('!').waitFor();
  await page.unroute(chat, forgeScript);
  await page.context().close();

  // The chat fails to load, and the next click tries again. Then the settings fail to load.
  page = await open({ url: site.url });
  await listen();
  await page.route(chat, abortRoute);
  await launcher(page).click();
  await eventually('an error event is emitted', async () => assert.ok((await failures()).length > 0));
  await page.unroute(chat, abortRoute);
  await page.route(/\/settings\//, abortRoute);
  await launcher(page).click();
  await page.getByText('The chat could not be loaded.').waitFor();
  await page.unroute(/\/settings\//, abortRoute);
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByLabel('First name').waitFor();
  assert.deepEqual(page.errors, []);
  await page.context().close();

  // A page with a stored session opens during an outage. It loads by itself when the server is available again.
  page = await open({ url: site.url });
  await register(page);
  const requests = { settings: 0, message: 0 };
  const outage = /\/(settings|message|socket\.io)\b/;
  const countAndAbort = (route) => {
    requests[outage.exec(route.request().url())[1]]++;
    return route.abort();
  };
  await page.route(outage, countAndAbort);
  await page.reload();
  await launcher(page).click();
  await page.getByText('The chat could not be loaded.').waitFor();
  await eventually('the history is requested again after the settings', async () => assert.ok(requests.settings > 0 && requests.message > 2));
  await page.unroute(outage, countAndAbort);
  await rows(page).first().waitFor();
  assert.deepEqual(page.errors, []);
  await page.context().close();

  // The application does not exist.
  site.serve(`<!doctype html><html lang="en"><title>Site</title>${tagOf({ ...config, appId: '00000000-0000-4000-8000-000000000000' })}<body></body>`);
  page = await open({ url: site.url });
  await launcher(page).click();
  await page.getByText('The chat is not available on this site.').waitFor();
  assert.deepEqual(page.errors, []);
  await page.context().close();

  // The server rejects the stored token.
  site.serve(`<!doctype html><html lang="en"><title>Site</title>${tagOf(config)}<body></body>`);
  page = await open({ url: site.url });
  await register(page);
  await page.evaluate((key) => localStorage.setItem(key, JSON.stringify({ ...JSON.parse(localStorage.getItem(key)), t: 'no.token.more' })), `parley.${config.appId}`);
  await page.reload();
  await page.waitForFunction(() => window.Parley?.open);
  await page.evaluate(() => Parley.open());
  await page.getByText('Your session has ended. Please introduce yourself again.').waitFor();
  assert.deepEqual(page.errors, []);
  site.close();
  report('widget broken: errors shown, and retried');
}

/** The application does not allow the site: the widget says so, to the owner in the console, and stops. */
export async function refused({ config, open, report }) {
  const site = await startSite();
  const { guardedAppId: appId } = config;
  site.serve(`<!doctype html><html lang="en"><title>Site</title>${tagOf({ ...config, appId })}<body></body>`);
  const page = await open({ url: site.url });
  const consoleErrors = [];
  page.on('console', (m) => m.type() === 'error' && m.text().startsWith('Parley') && consoleErrors.push(m.text()));
  await launcher(page).click();
  await page.getByText('The chat is not available on this site.').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Try again' }).count(), 0);
  assert.deepEqual(consoleErrors, [`Parley ${appId} on ${new URL(site.url).origin}: ORIGIN_NOT_ALLOWED Origin is not allowed`]);
  const asked = page.requestedUrls.length;
  await page.evaluate(() => window.dispatchEvent(new Event('online')));
  await new Promise((done) => setTimeout(done, 6_000)); // longer than the delay of a retry
  assert.equal(page.requestedUrls.length, asked, 'nothing is requested again');
  assert.deepEqual(page.errors, []);
  site.close();
  report('widget refused: named in the console, not retried');
}

/** A streamed answer of a bot: the bubble grows, is announced once, can be stopped, and survives a lost connection. */
export async function streaming({ config, open, report }) {
  const page = await open();
  await register(page);
  const writing = page.locator('[role=log] .writing');
  const announced = page.locator('[aria-live=polite]');
  const words = async () => (await writing.locator('.words').textContent()) ?? '';
  const grows = async () => {
    const before = (await words()).length;
    await eventually('the bubble grows', async () => assert.ok((await words()).length > before));
  };
  const whole = () => page.locator('[role=log] article[data-id] .words').filter({ hasText: 'only that is kept in the history' });

  await write(page, 'stream');
  await writing.waitFor();
  await grows();
  await writing.getByText('language model').waitFor();
  await page.screenshot({ path: join(config.shots, 'widget-streaming.png') });
  assert.doesNotMatch(await announced.textContent(), /word by word/, 'parts are not announced');
  const id = await writing.getAttribute('data-key');
  await whole().waitFor();
  assert.equal(await writing.count(), 0, 'the message replaces the partial answer');
  assert.deepEqual((await ids(page)).filter((i) => i === id), [id], 'the message has the id of the partial answer and is shown once');
  await eventually('the message is announced', async () => assert.match(await announced.textContent(), /^Polly: This answer comes word by word/));

  await write(page, 'stream');
  await writing.waitFor();
  await grows();
  await writing.getByRole('button', { name: 'Stop' }).click();
  await writing.waitFor({ state: 'detached' });
  const [all, stopped] = await Promise.all([whole().first(), rows(page).last().locator('.words')].map((l) => l.textContent()));
  assert.ok(stopped.trim() && all.startsWith(stopped.trim()) && stopped.length < all.length, `stopped: ${stopped}`); // the stopped answer is a prefix of the whole answer
  assert.match(await rows(page).last().textContent(), /Incomplete/, 'the stopped answer is marked');

  await write(page, 'stream');
  await writing.waitFor();
  await grows();
  await page.context().setOffline(true);
  await page.locator('.banner').waitFor();
  await page.context().setOffline(false);
  await eventually('the whole answer is shown after the outage', async () => assert.equal(await whole().count(), 2));
  assert.equal(await writing.count(), 0);

  await write(page, 'stream');
  await writing.waitFor();
  await page.reload();
  await page.waitForFunction(() => window.Parley?.open);
  await launcher(page).click();
  await eventually('the whole answer is shown after a reload', async () => assert.equal(await whole().count(), 3));
  assert.deepEqual(page.errors, []);
  report('widget: a streamed answer grows, stops, and survives an outage and a reload');
}
