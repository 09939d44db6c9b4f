// Scenarios of the chat widget: a complete session, and streamed answers. widget.mjs runs one exported function.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually, listMarks, png, unique, write } from '../page.mjs';
import { composer, cors, ids, launcher, messageWith, picture, register, rows, sendFromCompany } from './shared.mjs';

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
  const record = await page.evaluate((key) => JSON.parse(localStorage.getItem(key)), `parley.${config.appId}`);
  for (const name of ['token', 'read', 'unreadCount', 'registration', 'recovery']) assert.ok(name in record, `${name} is stored: ${Object.keys(record)}`);
  const { token } = record;
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

/** Answers in Markdown are drawn from their first word on, within the policy of the site; plain texts stay as they are. */
export async function markdown({ config, open, report }) {
  const page = await open();
  await page.route('**/widget/markdown-*.js', (route) => route.abort());
  await register(page);
  const last = rows(page).last().locator('.bubble');
  await write(page, 'Where is my order?');
  const source = readFileSync(new URL('../markdown.txt', import.meta.url), 'utf8');
  await sendFromCompany(page, { text: source, format: 'markdown' });
  await messageWith(page, '**free** delivery').waitFor(); // what draws it cannot be loaded
  await page.unroute('**/widget/markdown-*.js');
  await eventually('it is drawn once the file is there', async () => {
    await page.evaluate(() => ['de', 'en'].forEach(Parley.setLanguage)); // draws all messages again
    assert.equal(await last.locator('strong').first().textContent({ timeout: 500 }), 'Your order');
  });

  assert.deepEqual(await listMarks(last), ['decimal', 'disc', 'disc', 'decimal']);
  assert.equal(await last.locator('li ul > li').first().textContent(), 'free delivery');
  assert.match(await last.locator('pre').textContent(), /^curl -s "https:[^*]*\n {2}\| jq \.\n# \*\*no marks\*\*$/);
  const link = last.getByRole('link', { name: 'our shop' });
  assert.deepEqual(await Promise.all(['href', 'target', 'rel'].map((a) => link.getAttribute(a))), ['https://shop.example.com/a_b', '_blank', 'noopener noreferrer nofollow']);
  assert.equal(await last.locator('a').count(), 2, 'an address of another scheme is no link');
  assert.equal(await last.locator('img, script').count(), 0, 'HTML and pictures are not drawn');
  assert.match(await last.textContent(), /<img src=x onerror=.*\[press\]\(javascript:/);
  await page.screenshot({ path: join(config.shots, 'widget-markdown.png') });

  await write(page, 'stream');
  const writing = page.locator('[role=log] .writing .md');
  await writing.locator('strong').first().waitFor();
  let shown = '';
  while (await writing.count()) {
    assert.doesNotMatch(shown, /[*`]/, 'an open mark is not shown');
    shown = (await writing.textContent({ timeout: 500 }).catch(() => '')) ?? '';
  }
  assert.equal(await last.locator('code').textContent(), 'message.part');

  await sendFromCompany(page, { text: '**As it is**', format: 'plain' });
  await messageWith(page, '**As it is**').waitFor();
  await write(page, '**menu** `x`');
  await page.locator('.mine .words').filter({ hasText: '**menu** `x`' }).waitFor();
  assert.deepEqual(await page.evaluate(() => window.violations), [], 'the Content-Security-Policy is not violated');
  assert.deepEqual(page.errors, []);
  report('widget: Markdown is drawn, also while it is written');
}
