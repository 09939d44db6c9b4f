// What people do with the panel, and what must then be seen. Each exported function is one run of widget.mjs.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { jetstream } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { Webhook } from 'standardwebhooks';

const require = createRequire(import.meta.url);
const axeSource = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==', 'base64');

let counter = 0;
const unique = () => `${Date.now()}${++counter}`;
const sh = (line) => execFileSync('sh', ['-c', line], { encoding: 'utf8' });
const button = (at, name) => at.getByRole('button', { name, exact: true });
const dialog = (page, name) => page.getByRole('dialog', { name });
const go = (page, path) => page.evaluate((to) => (location.hash = to), '#' + path);
const heading = (page, name) => page.getByRole('heading', { level: 1, name }).waitFor();
const reply = (page) => page.getByLabel('Your reply');
const log = (page) => page.getByRole('log', { name: 'Messages' });
const said = (page, text) => log(page).getByText(text).first();
const row = (page, name) => page.locator('a.chat-row').filter({ hasText: name });

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

/** The panel, signed in as the first user. */
async function signedIn({ config, open }, { email = config.email, password = config.password, path = '', ...options } = {}) {
  const page = await open({ url: config.panel + '/' + (path && '#' + path), ready: false, ...options });
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password', { exact: true }).fill(password);
  await button(page, 'Sign in').click();
  await page.getByRole('navigation', { name: 'Sections' }).waitFor();
  return page;
}

/** What must be true of each page of the panel at its end. */
async function sound(page, config) {
  assert.deepEqual(page.faults, []);
  assert.deepEqual(await page.evaluate(() => window.violations), [], 'the policy is not violated');
  assert.equal(await page.locator('[style]').count(), 0, 'no element has an inline style');
  const own = [config.panel, config.base].map((u) => new URL(u).origin);
  assert.deepEqual(page.asked.filter((u) => /^https?:/.test(u) && !own.includes(new URL(u).origin)), [], 'no third host is asked');
}

const api = (page, method, path, body) =>
  page.evaluate(
    async ([method, path, body]) => {
      const session = await (await fetch('/api/session')).json();
      const companies = await (await fetch('/api/companies')).json();
      const company = session.company ?? companies.companies[0];
      const answer = await fetch(`/api/${path}${path.includes('?') ? '&' : '?'}companyId=${company.id}`, {
        method, headers: { 'X-CSRF-Token': session.csrfToken, ...(body && { 'Content-Type': 'application/json' }) }, ...(body && { body: JSON.stringify(body) }),
      });
      const text = await answer.text();
      if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
      return text ? JSON.parse(text) : undefined;
    },
    [method, path, body],
  );

/** A visitor in the widget, on the site. */
async function visitor({ open }, name, { email = `${name.toLowerCase()}${unique()}@example.com` } = {}) {
  const page = await open();
  await page.getByRole('button', { name: 'Open chat' }).click();
  await page.getByLabel('First name').fill(name);
  await page.getByLabel('Email').fill(email);
  await page.getByRole('button', { name: 'Start the chat' }).click();
  await page.locator('[role=log] article[data-id]').first().waitFor();
  page.email = email;
  page.write = async (text) => {
    await page.getByLabel('Your message').fill(text);
    await page.getByLabel('Your message').press('Enter');
    await page.locator('.mine .words').filter({ hasText: text }).last().waitFor();
  };
  page.said = (text) => page.locator('[role=log]').getByText(text).first();
  return page;
}

/** A visitor without a browser: registered and with one message. */
async function registered(config, firstName, text, more = {}) {
  const post = async (path, body, token) => {
    const answer = await fetch(config.base + path, { method: 'POST', headers: { 'Content-Type': 'application/json', ...(token && { Authorization: `Bearer ${token}` }) }, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  };
  const { accessToken } = await post('/register', { appId: config.appId, firstName, email: `${firstName.toLowerCase()}${unique()}@example.com`, ...more });
  if (text) await post('/message', { type: 'TEXT', data: { text } }, accessToken);
  return { write: (words) => post('/message', { type: 'TEXT', data: { text: words } }, accessToken) };
}

/** Invites somebody through the panel and accepts in another browser. */
async function invite(stage, page, name, role) {
  await go(page, '/people');
  await button(page, 'Invite').first().click();
  const form = dialog(page, 'Invite');
  const email = `${name.toLowerCase()}${unique()}@example.com`;
  await form.getByLabel('Email').fill(email);
  await form.getByLabel('Role').selectOption(role);
  await button(form, 'Create invitation').click();
  const link = await dialog(page, `Invitation for ${email}`).getByRole('region', { name: 'Invitation link' }).textContent();
  await button(dialog(page, `Invitation for ${email}`), 'Done').click();
  const own = await stage.open({ url: link.trim(), ready: false });
  await own.getByLabel('Your name').fill(name);
  await own.getByLabel('Choose a password').fill('too short');
  await button(own, 'Create account').click();
  await own.getByText('Use at least 12 characters.').waitFor();
  await own.getByLabel('Choose a password').fill('correct horse battery');
  await button(own, 'Create account').click();
  await own.getByRole('navigation', { name: 'Sections' }).waitFor();
  return { page: own, email };
}

/** The first visit, a token's whole life, and the line that uses it. */
export async function tokens(stage) {
  const { config, open, say } = stage;
  const page = await open({ url: config.panel + '/', ready: false });
  await page.getByLabel('Email').fill(config.email);
  await page.getByLabel('Password', { exact: true }).fill('not the password');
  await page.keyboard.press('Enter');
  await page.getByText('The email address or the password is wrong.').waitFor();
  await page.getByLabel('Password', { exact: true }).fill(config.password);
  await page.keyboard.press('Enter');
  await heading(page, 'Inbox');

  await registered(config, 'Ada', 'Hello');
  const chat = await eventually('the chat is there', async () => {
    const { chats } = await api(page, 'GET', 'chats?q=Ada');
    assert.equal(chats.length, 1);
    return chats[0];
  });

  await go(page, '/tokens');
  await button(page, 'New token').first().click();
  await button(dialog(page, 'New token'), 'Create token').click();
  await page.getByText('Fill in this field.').waitFor();
  await page.getByLabel('Name').fill('Order system');
  await page.getByLabel('Expires').selectOption('90');
  await button(dialog(page, 'New token'), 'Create token').click();
  const ready = dialog(page, 'Token "Order system" is ready');
  const secret = await ready.getByRole('region', { name: 'Token' }).textContent();
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await ready.getByRole('button', { name: 'Copy' }).first().click();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), secret);
  const line = (await ready.getByRole('region', { name: 'Try it' }).textContent()).replace('CHAT_ID', chat.id);
  assert.match(sh(`${line} -s`), /Message sent successfully/);
  await page.keyboard.press('Escape');
  await ready.waitFor(); // the secret does not go away by accident
  await button(ready, 'I have copied it').click();
  assert.ok(!(await page.content()).includes(secret), 'the secret is shown once');

  const entry = page.getByRole('row').filter({ hasText: 'Order system' });
  await entry.getByText(secret.slice(0, 6)).waitFor();
  await entry.getByText(config.email).waitFor();
  await button(page, 'Actions for Order system').click();
  await page.getByRole('menuitem', { name: 'Rotate' }).click();
  await page.getByLabel('Overlap').selectOption('3600');
  await button(dialog(page, 'Rotate "Order system"'), 'Rotate').click();
  const next = dialog(page, 'Token "Order system" is ready');
  const second = await next.getByRole('region', { name: 'Token' }).textContent();
  await next.getByText('The old token works until').waitFor();
  await button(next, 'I have copied it').click();
  assert.match(sh(`${line} -s`), /Message sent successfully/, 'the old one works for the overlap');
  const renewed = `${line.replace(secret, second)} -s`;
  assert.match(sh(renewed), /Message sent successfully/);

  await page.getByRole('row').filter({ hasText: second.slice(0, 6) }).getByRole('button', { name: 'Actions for Order system' }).last().click();
  await page.getByRole('menuitem', { name: 'Revoke' }).click();
  const start = Date.now();
  await button(dialog(page, 'Revoke this token?'), 'Revoke').click();
  await page.getByText('"Order system" is revoked').waitFor();
  await eventually('one of the two is refused', async () => assert.ok([sh(renewed), sh(`${line} -s`)].some((answer) => /401|Unauthorized/i.test(answer))));
  say(`a revoked token was refused after ${Date.now() - start} ms at most`);
  await sound(page, config);
}

/** A visitor and an agent see each other type, read and be there. */
export async function live(stage) {
  const { config, say } = stage;
  const agent = await signedIn(stage);
  await go(agent, '/inbox');
  await agent.getByText('Live', { exact: true }).waitFor();
  const ada = await visitor(stage, 'Ada');
  await ada.write('One');
  await ada.write('Two');
  await eventually('unread is counted', async () => assert.match(await row(agent, 'Ada').locator('.count').textContent(), /^2/));
  await row(agent, 'Ada').click();
  await agent.locator('.there.on').waitFor();
  await button(agent, 'Take over').click();
  await agent.getByText('With you').waitFor();

  // The agent types: the visitor sees it, hears it once, and the message ends it.
  await reply(agent).pressSequentially('I am on it', { delay: 50 });
  await ada.locator('.row.typing').waitFor();
  await eventually('typing is read out', async () => assert.match(await ada.locator('[aria-live=polite]').textContent(), / is typing…/));
  await reply(agent).press('Enter');
  await ada.said('I am on it').waitFor();
  await eventually('a message ends typing', async () => assert.equal(await ada.locator('.row.typing').count(), 0));
  await eventually('the agent sees that it was read', async () => assert.match(await log(agent).locator('article').last().textContent(), /Read/));

  // The visitor types, and stops without a word: it ends by itself.
  await ada.getByLabel('Your message').pressSequentially('And then', { delay: 350 });
  const typed = Date.now();
  await agent.getByText('Ada is typing…').waitFor();
  await agent.getByText('Ada is typing…').waitFor({ state: 'detached' });
  say(`typing that was not followed by anything was shown for ${Date.now() - typed} ms`);
  await ada.getByLabel('Your message').pressSequentially(' what', { delay: 600 }); // longer than the pause between two signals
  await agent.getByText('Ada is typing…').waitFor();
  await ada.getByLabel('Your message').press('Enter');
  await said(agent, 'And then what').waitFor();
  await eventually('the message ends it', async () => assert.equal(await agent.getByText('Ada is typing…').count(), 0));
  await eventually('the visitor sees that it was read', async () => assert.match(await ada.locator('.row.mine').last().textContent(), /Read/));

  // Unread at the launcher, and after the next page too: the cursor is the server's.
  await ada.getByRole('button', { name: 'Close chat' }).last().click();
  await reply(agent).fill('Here it is.');
  await reply(agent).press('Enter');
  const launcher = ada.getByRole('button', { name: /^Open chat/ });
  await eventually('the launcher counts', async () => assert.match(await launcher.textContent(), /1/));
  assert.doesNotMatch(await log(agent).locator('article').last().textContent(), /Read/);
  await launcher.click();
  await eventually('opened is read', async () => assert.match(await log(agent).locator('article').last().textContent(), /Read/));
  await ada.reload();
  await ada.getByRole('button', { name: /^Open chat/ }).click();
  await ada.getByText('Our team is online').waitFor();

  await ada.close();
  await eventually('the agent sees that the visitor has left', async () => assert.match(await agent.locator('.there').textContent(), /Last online/));
  await sound(agent, config);
}

/** Two agents and a visitor. */
export async function inbox(stage) {
  const { config } = stage;
  const first = await signedIn(stage);
  const { page: second } = await invite(stage, first, 'Bob', 'agent');
  assert.equal(await second.getByRole('link', { name: 'People' }).count(), 0, 'an agent does not see what the role has not');
  await go(first, '/inbox');
  await first.getByText('Live', { exact: true }).waitFor();
  await second.getByText('Live', { exact: true }).waitFor();

  const ada = await visitor(stage, 'Ada');
  await ada.write('Where is my parcel?');
  await row(first, 'Ada').getByText('unread').waitFor({ state: 'attached' });
  await row(second, 'Ada').waitFor();
  await eventually('the title counts', async () => assert.match(await first.title(), /^\(1\) Inbox/));

  await row(first, 'Ada').click();
  await said(first, 'Where is my parcel?').waitFor();
  await first.getByText('Bot answers').waitFor();
  await eventually('what is read is not unread', async () => assert.match(await first.title(), /^Inbox/));
  await row(second, 'Ada').click();
  await first.getByRole('group', { name: 'Also looking: Bob' }).waitFor();

  // The first reply takes the chat over, and the bot falls silent.
  await reply(first).pressSequentially('I look for it.', { delay: 20 });
  await second.getByText(/ is typing…/).waitFor();
  await reply(first).press('Enter');
  await ada.said('I look for it.').waitFor();
  await said(second, 'I look for it.').waitFor();
  await first.getByText('With you').waitFor();
  await eventually('the other agent sees who has it', async () => assert.match(await second.locator('.conv-title').textContent(), /With /));
  await eventually('delivery is told', async () => assert.match(await log(first).locator('article').last().textContent(), /Delivered|Read/));
  const before = await ada.locator('[role=log] article[data-id]').count();
  await ada.write('menu');
  await said(first, 'menu').waitFor();

  // Choices, a file, and the visitor's answer.
  await button(first, 'Offer choices').click();
  const offer = dialog(first, 'Offer choices');
  await offer.getByLabel('Question').fill('When shall we deliver?');
  await offer.getByLabel('Answer 1', { exact: true }).fill('Morning');
  await offer.getByLabel('Answer 2', { exact: true }).fill('Evening');
  await button(offer, 'Send').click();
  await ada.getByRole('button', { name: 'Evening' }).click();
  await log(first).locator('.choice.taken').filter({ hasText: 'Evening' }).waitFor();
  const [chooser] = await Promise.all([first.waitForEvent('filechooser'), button(first, 'Attach files').click()]);
  await chooser.setFiles([{ name: 'map.png', mimeType: 'image/png', buffer: png }]);
  await reply(first).fill('The way to the depot');
  await reply(first).press('Enter');
  await ada.said('The way to the depot').waitFor();
  await said(second, 'The way to the depot').waitFor();
  assert.equal(await ada.locator('[role=log] article[data-id]').count(), before + 4, 'the bot was silent: menu, question, choice and picture');

  // Back to the bot.
  await button(first, 'Hand back to bot').click();
  await second.getByText('Bot answers').waitFor();
  await ada.write('menu');
  await ada.getByRole('button', { name: 'Show me a picture' }).last().waitFor();
  await said(first, 'Show me a picture').waitFor();

  // The other agent takes it, and closes it.
  await button(second, 'Take over').click();
  await first.getByText('With Bob').waitFor();
  await button(second, 'Close').click();
  await button(dialog(second, 'Close this chat?'), 'Close chat').click();
  await second.getByText('This chat is closed.').waitFor();
  await first.getByText('This chat is closed.').waitFor();
  await button(first, 'Closed').click();
  await row(first, 'Ada').waitFor();
  for (const page of [first, second]) await sound(page, config);
}

/** A whole conversation without a pointer. */
export async function keyboard(stage) {
  const { config } = stage;
  const page = await signedIn(stage, {
    before: (p) => p.addInitScript(() => {
      window.notified = [];
      window.Notification = class {
        static permission = 'default';
        static requestPermission = async () => (window.Notification.permission = 'granted');
        constructor(title) {
          window.notified.push(title);
        }
      };
    }),
  });
  await page.getByText('Live', { exact: true }).waitFor();
  await registered(config, 'Carl', 'First');
  await row(page, 'Carl').waitFor();
  await registered(config, 'Dora', 'Second');
  await eventually('the newest is first', async () => assert.match(await page.locator('a.chat-row').first().textContent(), /Dora/));
  await page.locator('body').press('j');
  await said(page, 'Second').waitFor();
  await page.keyboard.press('j');
  await said(page, 'First').waitFor();
  await page.keyboard.press('t');
  await page.getByText('With you').waitFor();
  await page.keyboard.press('r');
  assert.equal(await page.evaluate(() => document.activeElement?.getAttribute('aria-label')), 'Your reply');
  await page.keyboard.type('jar? no: r, t and e are letters here');
  await page.keyboard.press('Enter');
  await said(page, 'jar? no: r, t and e are letters here').waitFor();
  await page.keyboard.press('Escape');
  assert.equal(await page.evaluate(() => document.activeElement?.getAttribute('role')), 'log');
  await page.keyboard.press('ArrowUp');
  assert.equal(await page.evaluate(() => document.activeElement?.tagName), 'ARTICLE');
  await page.keyboard.press('a');
  await page.locator('.conv-title').getByText('Waiting for an agent').waitFor();
  await page.keyboard.press('?');
  await dialog(page, 'Keyboard shortcuts').getByLabel('Use single-key shortcuts').click();
  await page.keyboard.press('Escape');
  await page.keyboard.press('e');
  assert.equal(await page.getByRole('dialog').count(), 0, 'single keys are off');

  // A desktop notification, once it has been asked for and while the page is not in front.
  await button(page, 'Notifications').click();
  await page.getByLabel('Show desktop notifications').click();
  await eventually('the browser was asked', async () => assert.equal(await page.evaluate(() => window.Notification.permission), 'granted'));
  await button(dialog(page, 'Notifications'), 'Done').click();
  await page.evaluate(() => (document.hasFocus = () => false));
  await registered(config, 'Finn', 'Is anybody there?');
  await eventually('it notifies', async () => assert.deepEqual(await page.evaluate(() => window.notified), ['Finn wrote']));
  await sound(page, config);
}

/** The preview is the widget itself, with what has not been saved. */
export async function applications(stage) {
  const { config } = stage;
  const page = await signedIn(stage, { path: `/applications/${config.appId}` });
  const frame = page.frameLocator('iframe');
  await frame.locator('.header').waitFor();
  await page.getByLabel('Primary', { exact: true }).fill('#7c2d12');
  await eventually('the preview has the colour', async () => assert.equal(await frame.locator('.sendbutton, .header').first().evaluate((e) => getComputedStyle(e.closest('.p')).getPropertyValue('--primary').trim()), '#7c2d12'));
  await page.getByLabel('Title').fill('Preview only');
  await frame.getByText('Preview only').waitFor();
  await frame.getByLabel('Your message').fill('hello');
  await frame.getByLabel('Your message').press('Enter');
  await frame.getByText('This is a preview: nothing is sent.', { exact: true }).waitFor();
  await button(page, 'Form').click();
  await frame.getByRole('button', { name: 'Start the chat' }).waitFor();
  await button(page, 'Phone').click();
  await eventually('a phone\'s width', async () => assert.equal(await page.locator('iframe').evaluate((e) => e.clientWidth), 375));
  await button(page, 'Dark').click();
  await eventually('the dark theme', async () => assert.equal(await frame.locator('.p').getAttribute('data-theme'), 'dark'));
  const settings = async () => (await fetch(`${config.base}/settings/${config.appId}`)).json();
  assert.notEqual((await settings()).name, 'Preview only', 'nothing is saved yet');
  await page.getByLabel('Title').fill('Shop chat');
  await button(page, 'Save').click();
  await page.getByText('Application saved').waitFor();
  await eventually('the Widget API has it', async () => {
    const s = await settings();
    assert.deepEqual([s.name, s.widgetConfigs.primaryBackgroundColor], ['Shop chat', '#7c2d12']);
  });

  await page.getByRole('link', { name: 'Form and greetings' }).click();
  await button(page, 'Add greeting').click();
  await page.getByRole('textbox', { name: /^Greeting/ }).last().fill('And one more thing.');
  await button(page, 'Chat').click();
  await frame.getByText('And one more thing.').first().waitFor();
  await page.getByRole('link', { name: 'Install' }).click(); // what is not saved goes with it
  assert.match(await page.getByRole('region', { name: 'Embed snippet' }).textContent(), new RegExp(`widget\\.js.*${config.appId}`));
  await button(page, 'Add origin').click();
  await page.getByRole('textbox', { name: /^Origin/ }).last().fill('https://www.example.com/shop');
  await page.getByText('An origin has no path.').waitFor();
  await page.keyboard.press('Tab');
  await page.getByText('You have unsaved changes.').waitFor();
  await button(page, 'Discard').click();
  await page.getByRole('link', { name: 'Identity and files' }).click();
  await page.getByLabel('Required', { exact: true }).click();
  await page.getByText('Create an identity secret first.').waitFor();
  await button(page, 'Create secret').click();
  await button(dialog(page, 'Create secret'), 'Create').click();
  await dialog(page, 'Identity secret').getByRole('region', { name: 'Secret' }).waitFor();
  await button(dialog(page, 'Identity secret'), 'I have copied it').click();
  await page.getByLabel('For sessions', { exact: true }).click();
  await page.getByText('Identity verification: for sessions').waitFor();
  await sound(page, config);
}

export async function templates(stage) {
  const { config } = stage;
  const page = await signedIn(stage, { path: '/templates/new' });
  await page.getByLabel('Name', { exact: true }).fill('Order sent');
  await page.getByLabel('Text', { exact: true }).fill('Hello {{username}}, order {{order}} leaves on {{day}}.');
  await page.getByRole('group', { name: 'Defaults of the placeholders' }).getByLabel('day').fill('Monday');
  await page.getByText('Hello Ada Lovelace, order  leaves on Monday.').waitFor();
  await page.getByText('Without a value: order').waitFor();
  await button(page, 'Save').click();
  await page.getByText('Draft', { exact: true }).waitFor();
  await button(page, 'Submit for approval').click();
  await page.getByText('Waiting for approval').waitFor();
  await button(page, 'Reject').click();
  await dialog(page, 'Reject this template?').getByLabel('Reason').fill('Say which order.');
  await button(dialog(page, 'Reject this template?'), 'Reject').click();
  await page.getByText('Say which order.').first().waitFor();
  await button(page, 'Submit for approval').click();
  await button(page, 'Approve').click();
  await page.getByText('It can be sent.').waitFor();
  await page.getByText('Approved', { exact: true }).last().waitFor();
  await button(page, 'Test push').click();
  const test = dialog(page, 'Test push');
  await test.getByLabel('Phone number').fill('351912345678');
  await button(test, 'Run the test').click();
  await test.getByText('This would be refused:').waitFor();
  await test.getByLabel('order').fill('1042');
  await button(test, 'Run the test').click();
  await test.getByText('This would be sent to 351912345678.').waitFor();
  await button(test, 'Close').first().click();

  await go(page, '/inbox');
  await registered(config, 'Ada', 'Hello');
  await row(page, 'Ada').click();
  await button(page, 'Send a template').click();
  const picker = dialog(page, 'Send a template');
  await picker.getByLabel('Template').selectOption({ label: 'Order sent' });
  await picker.getByLabel('order').fill('1042');
  await button(picker, 'Send').click();
  await said(page, 'Hello Ada, order 1042 leaves on Monday.').waitFor();
  await sound(page, config);
}

export async function streams(stage) {
  const { config } = stage;
  const page = await signedIn(stage, { path: '/streams' });
  await page.getByRole('heading', { name: 'INBOUND' }).waitFor();
  await page.getByRole('row').filter({ hasText: 'recorder' }).first().getByText('Up to date').waitFor();
  await page.getByRole('link', { name: 'Live tail' }).click();
  await page.getByText('Live', { exact: true }).waitFor();
  const ada = await visitor(stage, 'Ada');
  await ada.write('trace me');
  await page.locator('.tail-row').filter({ hasText: 'trace me' }).first().waitFor();
  const message = (await api(page, 'GET', `chats/${(await api(page, 'GET', 'chats?q=Ada')).chats[0].id}/messages`)).messages.find((m) => m.data.text === 'trace me');
  await go(page, `/streams/trace/${message.id}`);
  await page.getByText('What became of it').waitFor();
  await page.locator('.steps').getByText(/INBOUND #\d+/).waitFor();
  await page.locator('.steps').getByText('In the history').waitFor();
  await page.getByRole('link', { name: 'Dead letters' }).click();
  await page.getByText('No dead letters').waitFor();

  // Something that no consumer can read.
  const nats = await connect({ servers: config.nats });
  await jetstream(nats).publish(`chat.in.visitor.message.${config.appId}.${message.id}`, 'not an event');
  await nats.close();
  const letters = page.locator('tbody tr');
  await eventually('it is given up', async () => {
    await page.reload();
    await letters.first().waitFor({ timeout: 2000 });
  });
  const events = letters.getByRole('button');
  await events.first().click();
  await page.getByRole('dialog').getByRole('region', { name: 'Payload' }).getByText('not an event').waitFor();
  await button(page.getByRole('dialog'), 'Close').last().click();
  await button(page, 'Redrive all').click();
  const redrive = dialog(page, 'Redrive dead letters?');
  await redrive.getByText('would be redriven').first().waitFor();
  await redrive.getByText('Nothing has happened yet.').waitFor();
  await redrive.getByRole('button', { name: /^Redrive \d/ }).click();
  await page.getByText(/^\d+ redriven$/).waitFor();
  await eventually('it is given up again', async () => {
    await page.reload();
    await letters.first().waitFor({ timeout: 2000 });
  });
  await page.getByLabel('Choose all').click();
  await button(page, 'Delete').click();
  await dialog(page, 'Delete dead letters?').getByRole('button', { name: /^Delete \d/ }).click();
  await page.getByText(/^\d+ deleted$/).waitFor();
  await sound(page, config);
}

export async function people(stage) {
  const { config } = stage;
  const page = await signedIn(stage, { path: '/people' });
  const { page: bob, email } = await invite(stage, page, 'Bob', 'agent');
  await page.reload();
  await button(page, 'Actions for Bob').click();
  await page.getByRole('menuitem', { name: 'Edit' }).click();
  await page.getByRole('dialog').getByLabel('Role').selectOption('developer');
  await button(page.getByRole('dialog'), 'Save').click();
  await page.getByRole('row').filter({ hasText: email }).getByText('Developer').waitFor();
  await button(page, 'Actions for Bob').click();
  await page.getByRole('menuitem', { name: 'Sessions' }).click();
  await button(dialog(page, 'Sessions of Bob'), 'Sign out everywhere').click();
  await bob.getByText('Your session has ended.').waitFor(); // his page hears of it by itself
  await bob.getByRole('heading', { name: 'Sign in to Parley' }).waitFor();

  await registered(config, 'Zoe', 'Please forget me');
  await go(page, '/visitors');
  await page.getByLabel('Search by name, email, phone or customer number').fill('zoe');
  await page.getByRole('row').filter({ hasText: 'Zoe' }).waitFor();
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Export Zoe' }).click()]);
  assert.match(await readFile(await download.path(), 'utf8'), /Please forget me/);
  await button(page, 'Erase Zoe').click();
  const erase = dialog(page, 'Erase Zoe?');
  assert.ok(await button(erase, 'Erase for ever').isDisabled(), 'it wants a word first');
  await erase.getByLabel('Type "erase" to confirm').fill('erase');
  await button(erase, 'Erase for ever').click();
  await dialog(page, 'Receipt of erasure').getByText('Everything about this visitor has been erased.').waitFor();
  await button(dialog(page, 'Receipt of erasure'), 'Done').click();
  await page.getByText('No visitor found').waitFor();

  await go(page, '/audit');
  await page.getByRole('row').filter({ hasText: 'visitor.erase' }).first().waitFor();
  const changed = page.getByRole('row').filter({ hasText: 'user.update' }).first();
  await changed.getByRole('button').click();
  await page.locator('del').filter({ hasText: 'agent' }).waitFor();
  await page.locator('ins').filter({ hasText: 'developer' }).waitFor();

  await go(page, '/account');
  await button(page, 'Set up').click();
  await page.getByLabel('Current password').last().fill('wrong password');
  await button(page, 'Next').click();
  await page.getByText('The password is wrong.').waitFor();
  await page.getByRole('dialog').getByLabel('Current password').fill(config.password);
  await button(page, 'Next').click();
  const key = (await page.getByRole('region', { name: 'Setup key' }).textContent()).replace(/\s/g, '');
  await page.getByRole('dialog').getByLabel('Authentication code').fill(oneTimeCode(key, 0));
  await button(page, 'Confirm').click();
  await page.getByText('Two-factor authentication is on').waitFor();
  await button(page, 'Sign out everywhere').click();
  await button(dialog(page, 'Sign out everywhere'), 'Sign out everywhere').click();
  await page.getByLabel('Email').fill(config.email);
  await page.getByLabel('Password', { exact: true }).fill(config.password);
  await button(page, 'Sign in').click();
  await page.getByLabel('Authentication code').fill('000000');
  await button(page, 'Sign in').click();
  await page.getByText('That code is wrong or has expired.').waitFor();
  await page.getByLabel('Authentication code').fill(oneTimeCode(key, 1)); // each code counts once: the next one
  await button(page, 'Sign in').click();
  await heading(page, 'Your account'); // where the page was
  await sound(page, config);
}

/** A code of RFC 6238 for the current period, or a later one. */
function oneTimeCode(base32, later) {
  let bits = '';
  for (const c of base32) bits += 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(c).toString(2).padStart(5, '0');
  const key = Buffer.from(bits.match(/.{8}/g).map((b) => parseInt(b, 2)));
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000) + later));
  const mac = createHmac('sha1', key).update(counter).digest();
  return String((mac.readUInt32BE(mac[19] & 15) & 0x7fffffff) % 1_000_000).padStart(6, '0');
}

/** An operator works in one company at a time. */
export async function companies(stage) {
  const { config } = stage;
  const page = await signedIn(stage);
  await page.getByText('Live', { exact: true }).waitFor();
  await button(page, 'Company: Demo Company').click();
  await page.getByRole('menuitem', { name: 'New company' }).click();
  await page.getByLabel('Company name').fill('Globex');
  await button(page, 'Create company').click();
  await page.getByText('No open chats').waitFor();
  await page.getByText('Live', { exact: true }).waitFor();
  await go(page, '/applications');
  await page.getByText('No applications yet').waitFor();
  await button(page, 'New application').first().click();
  await page.getByLabel('Title').fill('Globex help');
  await page.getByLabel('Bot name').fill('Glo');
  await button(page, 'Create application').click();
  await page.frameLocator('iframe').getByText('Hello! How can we help you?').first().waitFor();
  await registered(config, 'Ada', 'For the demo company');
  await go(page, '/inbox');
  await button(page, 'Company: Globex').click();
  await page.getByRole('menuitemradio', { name: 'Demo Company' }).click();
  await row(page, 'Ada').waitFor();
  await page.getByText('Live', { exact: true }).waitFor();
  await page.reload();
  await button(page, 'Company: Demo Company').waitFor(); // it is remembered
  await sound(page, config);
}

const chatOf = (i) => ({
  id: `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`, companyId: '1', appId: '1', appName: 'Shop', channel: 'widget', status: 'active', createdAt: new Date(1.7e12).toISOString(), activityAt: new Date(1.75e12 - i * 60_000).toISOString(),
  windowExpiresAt: new Date(Date.now() + 1e7).toISOString(), inWindow: true, unread: i % 9 === 0, control: 'bot', assignee: null, visitor: { id: `v${i}`, name: `Visitor ${i}` }, lastMessage: null,
});

/** A webhook endpoint's life: created, tested, filtered, rotated, failing, replayed, disabled, deleted. */
export async function webhooks(stage) {
  const { config } = stage;
  const received = [];
  let status = 204;
  const receiver = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (part) => (body += part)).on('end', () => {
      received.push({ headers: request.headers, body });
      response.writeHead(status).end(status === 204 ? undefined : 'No room here');
    });
  });
  await new Promise((listening) => receiver.listen(0, '127.0.0.1', listening));
  const url = `http://127.0.0.1:${receiver.address().port}/parley`;
  const receive = (n) => eventually(`${n} requests are received`, async () => assert.equal(received.length, n));
  const act = async (page, item) => {
    await button(page, `Actions for ${url}`).click();
    await page.getByRole('menuitem', { name: item, exact: true }).click();
  };

  const page = await signedIn(stage, { path: '/webhooks' });
  await page.getByText('No webhook endpoints yet').waitFor();
  await button(page, 'New endpoint').first().click();
  const form = dialog(page, 'New endpoint');
  await button(form, 'Create endpoint').click();
  await form.getByText('Fill in this field.').waitFor();
  await form.getByLabel('URL').fill('ftp://shop.example');
  await form.getByLabel('Headers').fill('no header');
  await button(form, 'Create endpoint').click();
  await form.getByText('Write each line as "Name: value".').waitFor();
  await form.getByLabel('Headers').fill('X-Api-Key: let me in');
  await button(form, 'Create endpoint').click();
  await form.getByText('Must be an http or https URL.').waitFor();
  await form.getByLabel('URL').fill(url);
  await form.getByLabel('Description').fill('Order system');
  await button(form, 'Only some').click();
  await form.getByLabel('message.received').check();
  await button(form, 'Create endpoint').click();
  const ready = dialog(page, 'The endpoint is ready');
  const secret = await ready.getByRole('region', { name: 'Secret' }).textContent();
  await page.keyboard.press('Escape');
  await ready.waitFor(); // the secret does not go away by accident
  await button(ready, 'I have copied it').click();
  assert.ok(!(await page.content()).includes(secret), 'the secret is shown once');
  const entry = page.getByRole('row').filter({ hasText: url });
  await entry.getByText('message.received').waitFor();
  await entry.getByText('Enabled').waitFor();

  await act(page, 'Send a test');
  await heading(page, 'Deliveries');
  await receive(1);
  assert.equal(new Webhook(secret).verify(received[0].body, received[0].headers).type, 'webhook.test');
  assert.equal(received[0].headers['x-api-key'], 'let me in');
  const delivery = page.getByRole('row').filter({ hasText: 'webhook.test' });
  await delivery.getByText('Delivered').waitFor();
  await delivery.getByText('204 ·').waitFor();
  await registered(config, 'Ada', 'Where is my order?');
  await receive(2);
  assert.equal(JSON.parse(received[1].body).data.message.data.text, 'Where is my order?');

  status = 410;
  await button(page, 'Send a test').click();
  await receive(3);
  const failed = page.getByRole('row').filter({ hasText: 'answered 410' });
  await button(failed, 'webhook.test').click();
  const detail = dialog(page, 'webhook.test');
  await detail.getByText('No room here').waitFor();
  await detail.getByRole('region', { name: 'Body' }).getByText('"webhook.test"').waitFor();
  await button(detail, 'Close').last().click();

  status = 204;
  await page.getByRole('link', { name: 'Webhooks' }).first().click();
  await entry.getByText('answered 410').waitFor();
  await act(page, 'Enable');
  await entry.getByText('Enabled').waitFor();
  await act(page, 'Deliveries');
  await page.getByLabel('Status').selectOption('failed');
  await button(page, 'Replay failed ones').click();
  await dialog(page, 'Replay failed ones').getByText('1 delivery will be sent again').waitFor();
  await button(dialog(page, 'Replay failed ones'), 'Replay').click();
  await receive(4);
  assert.equal(received[3].headers['webhook-id'], received[2].headers['webhook-id']);
  await page.getByLabel('Status').selectOption('');
  await eventually('all are delivered', async () => assert.equal(await page.getByRole('row').getByText('Delivered', { exact: true }).count(), 3));

  await page.getByRole('link', { name: 'Webhooks' }).first().click();
  await act(page, 'Rotate secret');
  await button(dialog(page, 'Rotate the secret'), 'Rotate secret').click();
  const second = await dialog(page, 'The endpoint is ready').getByRole('region', { name: 'Secret' }).textContent();
  await button(dialog(page, 'The endpoint is ready'), 'I have copied it').click();
  await act(page, 'Send a test');
  await receive(5);
  for (const key of [secret, second]) new Webhook(key).verify(received[4].body, received[4].headers);

  await page.getByRole('link', { name: 'Webhooks' }).first().click();
  await act(page, 'Edit');
  const edit = dialog(page, 'Edit endpoint');
  await edit.getByText('Set: X-Api-Key.').waitFor();
  await edit.getByLabel('Description').fill('Order system, new');
  await button(edit, 'Save').click();
  await entry.getByText('Order system, new').waitFor();
  await act(page, 'Disable');
  await button(dialog(page, 'Disable this endpoint?'), 'Disable').click();
  await entry.getByText('disabled by a user').waitFor();
  await act(page, 'Delete');
  await button(dialog(page, 'Delete this endpoint?'), 'Delete').click();
  await page.getByText('No webhook endpoints yet').waitFor();

  const { page: agent } = await invite(stage, page, 'Bob', 'agent');
  assert.equal(await agent.getByRole('link', { name: 'Webhooks' }).count(), 0, 'an agent has no webhooks');
  receiver.close();
  await sound(page, config);
}

/** A list of 100,000 chats: the document stays small, and each page is asked for once. */
export async function scale(stage) {
  const { config, say } = stage;
  const total = 100_000;
  const asked = [];
  const page = await signedIn(stage, {
    before: (p) => p.route(/\/api\/chats\?/, (route) => {
      const from = Number(new URL(route.request().url()).searchParams.get('cursor') ?? 0);
      asked.push(from);
      const size = 5000; // larger than the server's, so that the test ends
      return route.fulfill({ json: { chats: Array.from({ length: Math.min(size, total - from) }, (_, i) => chatOf(from + i)), next: from + size < total ? String(from + size) : null } });
    }),
  });
  const list = page.locator('.virtual');
  await row(page, 'Visitor 0').first().waitFor();
  const start = Date.now();
  for (let n = 0; n < total / 5000 - 1; n++) {
    await list.evaluate((e) => (e.scrollTop = e.scrollHeight));
    await eventually(`page ${n + 2}`, async () => assert.ok(asked.length > n + 1));
  }
  await eventually('the last chat', async () => {
    await list.evaluate((e) => (e.scrollTop = e.scrollHeight));
    await row(page, `Visitor ${total - 1}`).waitFor({ timeout: 500 });
  });
  say(`100,000 chats scrolled through in ${Date.now() - start} ms`);
  assert.ok((await page.locator('a.chat-row').count()) < 60, 'only rows in sight are in the document');
  assert.equal(new Set(asked).size, asked.length, 'each page is asked for once');
  await sound(page, config);
}

/** Without live events the page says so, and catches up; a reply whose answer is lost is sent once. */
export async function notLive(stage) {
  const { config } = stage;
  let away = false;
  const page = await signedIn(stage, { before: (p) => p.route(/\/api\/events/, (route) => (away ? route.abort() : route.continue())) });
  await page.getByText('Live', { exact: true }).waitFor();
  away = true;
  await page.context().setOffline(true);
  await page.getByText('You are offline. What you see may be old.').waitFor();
  await page.getByText('Not live', { exact: true }).waitFor();
  await page.context().setOffline(false);
  await page.getByText('Not live: new messages may be missing.').waitFor();
  await registered(config, 'Eve', 'Written while you were away');
  away = false;
  await row(page, 'Eve').waitFor();
  await page.getByText('Live', { exact: true }).waitFor();

  const keys = [];
  await page.route(/\/api\/chats\/[^/]+\/messages/, async (route) => {
    if (route.request().method() !== 'POST') return route.continue();
    keys.push(route.request().headers()['idempotency-key']);
    if (keys.length > 1) return route.continue();
    await route.fetch(); // it arrives, and its answer does not
    return route.abort();
  });
  await row(page, 'Eve').click();
  await reply(page).fill('Only once');
  await reply(page).press('Enter');
  await eventually('it is sent again', async () => assert.equal(keys.length, 2));
  await page.locator('.pending').waitFor({ state: 'detached' });
  assert.equal(keys[0], keys[1]);
  const { messages } = await api(page, 'GET', `chats/${(await api(page, 'GET', 'chats?q=Eve')).chats[0].id}/messages`);
  assert.equal(messages.filter((m) => m.data.text === 'Only once').length, 1);
  assert.equal(await log(page).getByText('Only once').count(), 1);
  assert.deepEqual(page.faults, []);
}

/** Each screen, light and dark, on a desktop and on a phone: nothing that axe finds, and a picture. */
export async function screens(stage) {
  const { config, say } = stage;
  const page = await signedIn(stage, { viewport: { width: 1440, height: 900 } });
  const ada = await visitor(stage, 'Ada');
  await ada.write('Hello, where is my parcel?');
  await registered(config, 'Katherine', 'Do you ship to Portugal?');
  await registered(config, 'Margaret', 'Can I change the address of order 1042?');
  await registered(config, 'Radia', 'Thank you, the evening is fine.');
  const token = await api(page, 'POST', 'tokens', { name: 'Order system' });
  assert.ok(token.secret);
  const template = await api(page, 'POST', 'templates', { name: 'Order sent', text: 'Hello {{username}}, order {{order}} is on its way.', parameters: [{ name: 'order', default: '' }] });
  await api(page, 'POST', `templates/${template.id}/submit`, {});
  const webhook = await api(page, 'POST', 'webhooks', { url: 'https://crm.example/parley', description: 'Order system', events: ['message.received', 'chat.closed'], headers: { 'X-Api-Key': 'let me in' } });
  await api(page, 'POST', 'users', { email: 'grace@example.com', name: 'Grace Hopper', role: 'agent' });
  await api(page, 'POST', 'users', { email: 'linus@example.com', name: 'Linus Bell', role: 'developer' });
  await row(page, 'Ada').click();
  await said(page, 'Hello, where is my parcel?').waitFor();
  await reply(page).fill('I look for it. One moment, please.');
  await reply(page).press('Enter');
  await ada.said('I look for it.').waitFor();
  const { chats } = await api(page, 'GET', 'chats?q=Ada');
  const { messages } = await api(page, 'GET', `chats/${chats[0].id}/messages`);
  const shown = [
    ['inbox', `/inbox/${chats[0].id}`, () => said(page, 'I look for it.').waitFor()],
    ['tokens', '/tokens', () => page.getByRole('row').filter({ hasText: 'Order system' }).waitFor()],
    ['applications', '/applications', () => page.locator('.app-tile').first().waitFor()],
    ['application', `/applications/${config.appId}`, () => page.frameLocator('iframe').locator('.header').waitFor()],
    ['install', `/applications/${config.appId}/install`, () => page.getByRole('region', { name: 'Embed snippet' }).waitFor()],
    ['identity', `/applications/${config.appId}/security`, () => page.getByText('Identity secrets').waitFor()],
    ['templates', '/templates', () => page.getByRole('row').filter({ hasText: 'Order sent' }).waitFor()],
    ['template', `/templates/${template.id}`, () => page.getByText('Submitted', { exact: true }).waitFor()],
    ['streams', '/streams', () => page.getByRole('heading', { name: 'INBOUND' }).waitFor()],
    ['trace', `/streams/trace/${messages.at(-1).id}`, () => page.getByText('What became of it').waitFor()],
    ['dead', '/streams/dead', () => page.getByText('No dead letters').waitFor()],
    ['webhooks', '/webhooks', () => page.getByRole('row').filter({ hasText: 'crm.example' }).waitFor()],
    ['deliveries', `/webhooks/${webhook.endpoint.id}`, () => page.getByText('No deliveries').waitFor()],
    ['people', '/people', () => page.getByRole('row').filter({ hasText: 'Grace Hopper' }).waitFor()],
    ['visitors', '/visitors', () => page.getByRole('row').filter({ hasText: 'Katherine' }).waitFor()],
    ['audit', '/audit', () => page.getByRole('row').filter({ hasText: 'token.create' }).waitFor()],
    ['account', '/account', () => page.getByText('This browser').waitFor()],
  ];
  let looked = 0;
  const look = async (name) => {
    looked++;
    await page.evaluate(() => Promise.all(document.getAnimations().map((a) => a.finished.catch(() => {}))));
    if (!(await page.evaluate(() => !!window.axe))) await page.evaluate(axeSource); // a script element would be against the policy
    const { violations } = await page.evaluate(() => window.axe.run(document, { iframes: false, runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }));
    assert.deepEqual(violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html.slice(0, 120)).join(' | ')}`), [], `axe on ${name}`);
    await page.screenshot({ path: join(config.shots, `panel-${name}.png`) });
  };
  for (const [suffix, scheme, viewport] of [['', 'light', { width: 1440, height: 900 }], ['-dark', 'dark', { width: 1440, height: 900 }], ['-phone', 'light', { width: 390, height: 800 }]]) {
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' });
    await page.setViewportSize(viewport);
    for (const [name, path, ready] of shown) {
      await go(page, path);
      await ready();
      await look(name + suffix);
    }
  }
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' });
  await go(page, '/tokens');
  await button(page, 'New token').click();
  await look('dialog');
  await page.keyboard.press('Escape');
  await go(page, '/webhooks');
  await button(page, 'New endpoint').click();
  await button(page, 'Only some').click();
  await look('webhook-dialog');
  await page.keyboard.press('Escape');
  await go(page, `/inbox/${chats[0].id}`);
  await button(page, 'Filters').click();
  await button(page, 'Details').click();
  await look('filters');
  for (const opens of ['Offer choices', 'Send a template', 'Keyboard shortcuts', 'Notifications']) {
    await button(page, opens).click();
    await dialog(page, opens).waitFor();
    await look(opens.toLowerCase().replaceAll(' ', '-'));
    await page.keyboard.press('Escape');
  }
  await page.getByRole('button', { name: 'your account, theme and sign-out' }).click();
  await look('menu');
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'Sign in to Parley' }).waitFor();
  await look('sign-in');
  say(`axe: 0 findings on ${looked} screens`);
}
