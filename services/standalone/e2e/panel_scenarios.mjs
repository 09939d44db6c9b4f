// Scenarios of the panel. widget.mjs runs one exported function.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { jetstream } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { Webhook } from 'standardwebhooks';
import { assertNoErrors, axeRules, button, chatRow, eventually, holdPosts, loadAxe, openVisitor, png, signIn, unique, write } from './page.mjs';

const sh = (line) => execFileSync('sh', ['-c', line], { encoding: 'utf8' });
const dialog = (page, name) => page.getByRole('dialog', { name });
const navigate = (page, path) => page.evaluate((to) => (location.hash = to), '#' + path);
const waitForHeading = (page, name) => page.getByRole('heading', { level: 1, name }).waitFor();
const reply = (page) => page.getByLabel('Your reply');
const log = (page) => page.getByRole('log', { name: 'Messages' });
const messageWith = (page, text) => log(page).getByText(text).first();

/** Checks that a page of the panel has no errors, no inline styles and no requests to other hosts. */
async function assertClean(page, config) {
  await assertNoErrors(page);
  assert.equal(await page.locator('[style]').count(), 0, 'no element has an inline style');
  const own = [config.panel, config.base].map((u) => new URL(u).origin);
  assert.deepEqual(page.requestedUrls.filter((u) => /^https?:/.test(u) && !own.includes(new URL(u).origin)), [], 'the page requests nothing from other hosts');
}

const api = (page, method, path, body) =>
  page.evaluate(
    async ([method, path, body]) => {
      const session = await (await fetch('/api/session')).json();
      const companies = await (await fetch('/api/companies')).json();
      const company = session.company ?? companies.companies[0];
      const response = await fetch(`/api/${path}${path.includes('?') ? '&' : '?'}companyId=${company.id}`, {
        method, headers: { 'X-CSRF-Token': session.csrfToken, ...(body && { 'Content-Type': 'application/json' }) }, ...(body && { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
      return text ? JSON.parse(text) : undefined;
    },
    [method, path, body],
  );

/** Opens the widget as a visitor, with methods to write and to find messages. */
async function openVisitorPage(env, name) {
  const page = await openVisitor(env, name);
  page.write = async (text) => {
    await write(page, text);
    await page.locator('.mine .words').filter({ hasText: text }).last().waitFor();
  };
  page.messageWith = (text) => page.locator('[role=log]').getByText(text).first();
  return page;
}

/** Registers a visitor through the API, without a browser, and sends a message if a text is given. */
async function registerVisitor(config, firstName, text, more = {}) {
  const post = async (path, body, token) => {
    const response = await fetch(config.base + path, { method: 'POST', headers: { 'Content-Type': 'application/json', ...(token && { Authorization: `Bearer ${token}` }) }, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response.json();
  };
  const { accessToken } = await post('/register', { appId: config.appId, firstName, email: `${firstName.toLowerCase()}${unique()}@example.com`, ...more });
  if (text) await post('/message', { type: 'TEXT', data: { text } }, accessToken);
  return { write: (words) => post('/message', { type: 'TEXT', data: { text: words } }, accessToken) };
}

/** Invites a user in the panel, and accepts the invitation in another browser context. */
async function invite(env, page, name, role) {
  await navigate(page, '/people');
  await button(page, 'Invite').first().click();
  const form = dialog(page, 'Invite');
  const email = `${name.toLowerCase()}${unique()}@example.com`;
  await form.getByLabel('Email').fill(email);
  await form.getByLabel('Role').selectOption(role);
  await button(form, 'Create invitation').click();
  const link = await dialog(page, `Invitation for ${email}`).getByRole('region', { name: 'Invitation link' }).textContent();
  await button(dialog(page, `Invitation for ${email}`), 'Done').click();
  const own = await env.open({ url: link.trim(), ready: false });
  await own.getByLabel('Your name').fill(name);
  await own.getByLabel('Choose a password').fill('too short');
  await button(own, 'Create account').click();
  await own.getByText('Use at least 12 characters.').waitFor();
  await own.getByLabel('Choose a password').fill('correct horse battery');
  await button(own, 'Create account').click();
  await own.getByRole('navigation', { name: 'Sections' }).waitFor();
  return { page: own, email };
}

/** The first sign-in; then a token is created, used with curl, rotated and revoked. */
export async function tokens(env) {
  const { config, open, report } = env;
  const page = await open({ url: config.panel + '/', ready: false });
  await page.getByLabel('Email').fill(config.email);
  await page.getByLabel('Password', { exact: true }).fill('not the password');
  await page.keyboard.press('Enter');
  await page.getByText('The email address or the password is wrong.').waitFor();
  await page.getByLabel('Password', { exact: true }).fill(config.password);
  await page.keyboard.press('Enter');
  await waitForHeading(page, 'Inbox');

  await registerVisitor(config, 'Ada', 'Hello');
  const chat = await eventually('the chat is listed', async () => {
    const { chats } = await api(page, 'GET', 'chats?q=Ada');
    assert.equal(chats.length, 1);
    return chats[0];
  });

  await navigate(page, '/tokens');
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
  await ready.waitFor(); // Escape does not close the dialog with the secret
  await button(ready, 'I have copied it').click();
  assert.ok(!(await page.content()).includes(secret), 'the secret is no longer in the page');

  const entry = page.getByRole('row').filter({ hasText: 'Order system' });
  await entry.getByText(secret.slice(0, 6)).waitFor();
  await entry.getByText(config.email).waitFor();
  await button(page, 'Actions for Order system').click();
  await page.getByRole('menuitem', { name: 'Rotate' }).click();
  await page.getByLabel('Overlap').selectOption('3600');
  await button(dialog(page, 'Rotate "Order system"'), 'Rotate').click();
  const rotated = dialog(page, 'Token "Order system" is ready');
  const second = await rotated.getByRole('region', { name: 'Token' }).textContent();
  await rotated.getByText('The old token works until').waitFor();
  await button(rotated, 'I have copied it').click();
  assert.match(sh(`${line} -s`), /Message sent successfully/, 'the old token works during the overlap');
  const newLine = `${line.replace(secret, second)} -s`;
  assert.match(sh(newLine), /Message sent successfully/);

  await page.getByRole('row').filter({ hasText: second.slice(0, 6) }).getByRole('button', { name: 'Actions for Order system' }).last().click();
  await page.getByRole('menuitem', { name: 'Revoke' }).click();
  const start = Date.now();
  await button(dialog(page, 'Revoke this token?'), 'Revoke').click();
  await page.getByText('"Order system" is revoked').waitFor();
  await eventually('one of the two tokens is refused', async () => assert.ok([sh(newLine), sh(`${line} -s`)].some((answer) => /401|Unauthorized/i.test(answer))));
  report(`a revoked token was refused within ${Date.now() - start} ms`);
  await assertClean(page, config);
}

/** A visitor and an agent see each other's typing, read receipts and presence. */
export async function live(env) {
  const { config, report } = env;
  const agent = await signIn(env);
  await navigate(agent, '/inbox');
  await agent.getByText('Live', { exact: true }).waitFor();
  const ada = await openVisitorPage(env, 'Ada');
  await ada.write('One');
  await ada.write('Two');
  await eventually('the inbox counts two unread messages', async () => assert.match(await chatRow(agent, 'Ada').locator('.count').textContent(), /^2/));
  await chatRow(agent, 'Ada').click();
  await agent.locator('.there.on').waitFor();
  await button(agent, 'Take over').click();
  await agent.getByText('With you').waitFor();

  // The agent types: the widget shows it and announces it, and the message ends it.
  await reply(agent).pressSequentially('I am on it', { delay: 50 });
  await ada.locator('.row.typing').waitFor();
  await eventually('the widget announces that the agent is typing', async () => assert.match(await ada.locator('[aria-live=polite]').textContent(), / is typing…/));
  await reply(agent).press('Enter');
  await ada.messageWith('I am on it').waitFor();
  await eventually('the message ends the typing indicator', async () => assert.equal(await ada.locator('.row.typing').count(), 0));
  await eventually('the agent sees that the visitor has read the message', async () => assert.match(await log(agent).locator('article').last().textContent(), /Read/));

  // The visitor types and stops without sending: the indicator expires.
  await ada.getByLabel('Your message').pressSequentially('And then', { delay: 350 });
  const typed = Date.now();
  await agent.getByText('Ada is typing…').waitFor();
  await agent.getByText('Ada is typing…').waitFor({ state: 'detached' });
  report(`the typing indicator without a message was shown for ${Date.now() - typed} ms`);
  await ada.getByLabel('Your message').pressSequentially(' what', { delay: 600 }); // longer than the interval between two typing events
  await agent.getByText('Ada is typing…').waitFor();
  await ada.getByLabel('Your message').press('Enter');
  await messageWith(agent, 'And then what').waitFor();
  await eventually('the message ends the typing of the visitor', async () => assert.equal(await agent.getByText('Ada is typing…').count(), 0));
  await eventually('the visitor sees that the agent has read the message', async () => assert.match(await ada.locator('.row.mine').last().textContent(), /Read/));

  // The launcher shows the unread count.
  await ada.getByRole('button', { name: 'Close chat' }).last().click();
  await reply(agent).fill('Here it is.');
  await reply(agent).press('Enter');
  const launcher = ada.getByRole('button', { name: /^Open chat/ });
  await eventually('the launcher shows one unread message', async () => assert.match(await launcher.textContent(), /1/));
  assert.doesNotMatch(await log(agent).locator('article').last().textContent(), /Read/);
  await launcher.click();
  await eventually('opening the chat marks the message as read', async () => assert.match(await log(agent).locator('article').last().textContent(), /Read/));
  await ada.reload();
  await ada.getByRole('button', { name: /^Open chat/ }).click();
  await ada.getByText('Our team is online').waitFor();

  await ada.close();
  await eventually('the agent sees that the visitor is offline', async () => assert.match(await agent.locator('.there').textContent(), /Last online/));
  await assertClean(agent, config);
}

/** Two agents share the chat of a visitor. */
export async function inbox(env) {
  const { config } = env;
  const first = await signIn(env);
  const { page: second } = await invite(env, first, 'Bob', 'agent');
  assert.equal(await second.getByRole('link', { name: 'People' }).count(), 0, 'an agent does not see a section without permission');
  await navigate(first, '/inbox');
  await first.getByText('Live', { exact: true }).waitFor();
  await second.getByText('Live', { exact: true }).waitFor();

  const ada = await openVisitorPage(env, 'Ada');
  await ada.write('Where is my parcel?');
  await chatRow(first, 'Ada').getByText('unread').waitFor({ state: 'attached' });
  await chatRow(second, 'Ada').waitFor();
  assert.match(await first.title(), /^Inbox/, 'a chat of the bot waits for nobody');

  await chatRow(first, 'Ada').click();
  await messageWith(first, 'Where is my parcel?').waitFor();
  await first.getByText('Bot answers').waitFor();
  await chatRow(second, 'Ada').click();
  await first.getByRole('group', { name: 'Also looking: Bob' }).waitFor();

  // The first reply takes the chat over, and the bot falls silent.
  await reply(first).pressSequentially('I look for it.', { delay: 20 });
  await second.getByText(/ is typing…/).waitFor();
  await reply(first).press('Enter');
  await ada.messageWith('I look for it.').waitFor();
  await messageWith(second, 'I look for it.').waitFor();
  await first.getByText('With you').waitFor();
  await eventually('the other agent sees the assignee', async () => assert.match(await second.locator('.conv-title').textContent(), /With /));
  await eventually('the message is marked as delivered', async () => assert.match(await log(first).locator('article').last().textContent(), /Delivered|Read/));
  const before = await ada.locator('[role=log] article[data-id]').count();
  await ada.write('menu');
  await messageWith(first, 'menu').waitFor();

  // The agent offers choices, the visitor chooses one, and the agent sends a file.
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
  await ada.messageWith('The way to the depot').waitFor();
  await messageWith(second, 'The way to the depot').waitFor();
  assert.equal(await ada.locator('[role=log] article[data-id]').count(), before + 4, 'only the menu request, the question, the choice and the picture were added: the bot was silent');

  // The agent hands the chat back to the bot.
  await button(first, 'Hand back to bot').click();
  await second.getByText('Bot answers').waitFor();
  await ada.write('menu');
  await ada.getByRole('button', { name: 'Show me a picture' }).last().waitFor();
  await messageWith(first, 'Show me a picture').waitFor();

  // The other agent takes the chat over and closes it.
  await button(second, 'Take over').click();
  await first.getByText('With Bob').waitFor();
  await button(second, 'Close').click();
  await second.getByText('Closed.', { exact: true }).waitFor();
  await first.getByText('This chat is closed.').waitFor();
  await button(first, 'Closed').click();
  await chatRow(first, 'Ada').waitFor();
  for (const page of [first, second]) await assertClean(page, config);
}

/** A conversation with the keyboard only. */
export async function keyboard(env) {
  const { config } = env;
  const page = await signIn(env, {
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
  await registerVisitor(config, 'Carl', 'First');
  await chatRow(page, 'Carl').waitFor();
  await registerVisitor(config, 'Dora', 'Second');
  await eventually('the newest chat is at the top', async () => assert.match(await page.locator('a.chat-row').first().textContent(), /Dora/));
  await page.locator('body').press('j');
  await messageWith(page, 'Second').waitFor();
  await page.keyboard.press('j');
  await messageWith(page, 'First').waitFor();
  await page.keyboard.press('t');
  await page.getByText('With you').waitFor();
  await page.keyboard.press('r');
  assert.equal(await page.evaluate(() => document.activeElement?.getAttribute('aria-label')), 'Your reply');
  await page.keyboard.type('jar? no: r, t and e are letters here');
  const releasePost = await holdPosts(page, /\/api\/chats\/[^/]+\/messages/);
  await page.keyboard.press('Enter');
  await messageWith(page, 'jar? no: r, t and e are letters here').waitFor();
  await page.keyboard.press('Escape');
  assert.equal(await page.evaluate(() => document.activeElement?.getAttribute('role')), 'log');
  await page.keyboard.press('ArrowUp');
  assert.match(await page.evaluate(() => document.activeElement?.getAttribute('aria-label')), /Sending/);
  releasePost();
  await page.locator('article.pending').waitFor({ state: 'detached' });
  const focused = await page.evaluate(() => [document.activeElement?.tagName, document.activeElement?.textContent]);
  assert.equal(focused[0], 'ARTICLE', 'the focus stays in the messages');
  assert.match(focused[1], /r, t and e are letters here/, 'the sent message has the focus of the pending one');
  await page.keyboard.press('a');
  await page.locator('.conv-title').getByText('Waiting for an agent').waitFor();
  await page.keyboard.press('?');
  await dialog(page, 'Keyboard shortcuts').getByLabel('Use single-key shortcuts').click();
  await page.keyboard.press('Escape');
  await page.keyboard.press('e');
  assert.equal(await page.getByRole('dialog').count(), 0, 'single-key shortcuts are off');

  // The panel shows a desktop notification after permission was granted and while the page has no focus.
  await button(page, 'Notifications').click();
  await page.getByLabel('Show desktop notifications').click();
  await eventually('the browser has granted permission for notifications', async () => assert.equal(await page.evaluate(() => window.Notification.permission), 'granted'));
  await button(dialog(page, 'Notifications'), 'Done').click();
  await page.evaluate(() => (document.hasFocus = () => false));
  await registerVisitor(config, 'Finn', 'Is anybody there?');
  await eventually('the panel shows a notification', async () => assert.deepEqual(await page.evaluate(() => window.notified), ['Finn wrote']));
  await assertClean(page, config);
}

/** The preview shows the widget with the unsaved settings. */
export async function applications(env) {
  const { config } = env;
  const page = await signIn(env, { path: `/applications/${config.appId}` });
  const frame = page.frameLocator('iframe');
  await frame.locator('.header').waitFor();
  await page.getByLabel('Primary', { exact: true }).fill('#7c2d12');
  await eventually('the preview has the new primary colour', async () => assert.equal(await frame.locator('.sendbutton, .header').first().evaluate((e) => getComputedStyle(e.closest('.p')).getPropertyValue('--primary').trim()), '#7c2d12'));
  await page.getByLabel('Title').fill('Preview');
  await frame.getByRole('heading', { name: 'Preview', exact: true }).waitFor();
  await page.keyboard.type(' only', { delay: 100 }); // the preview, which has changed in between, has not taken the focus
  assert.equal(await page.getByLabel('Title').inputValue(), 'Preview only');
  await frame.getByText('Preview only').waitFor();
  await frame.getByLabel('Your message').fill('hello');
  await frame.getByLabel('Your message').press('Enter');
  await frame.getByText('This is a preview: nothing is sent.', { exact: true }).waitFor();
  await button(page, 'Form').click();
  await frame.getByRole('button', { name: 'Start the chat' }).waitFor();
  await button(page, 'Phone').click();
  await eventually('the preview has the width of a phone', async () => assert.equal(await page.locator('iframe').evaluate((e) => e.clientWidth), 375));
  await button(page, 'Dark').click();
  await eventually('the preview has the dark theme', async () => assert.equal(await frame.locator('.p').getAttribute('data-theme'), 'dark'));
  const settings = async () => (await fetch(`${config.base}/settings/${config.appId}`)).json();
  assert.notEqual((await settings()).name, 'Preview only', 'the draft is not saved yet');
  await page.getByLabel('Title').fill('Shop chat');
  await button(page, 'Save').click();
  await page.getByText('Application saved').waitFor();
  await eventually('the Widget API returns the new settings', async () => {
    const s = await settings();
    assert.deepEqual([s.name, s.widgetConfigs.primaryBackgroundColor], ['Shop chat', '#7c2d12']);
  });

  await page.getByRole('link', { name: 'Form and greetings' }).click();
  await button(page, 'Add greeting').click();
  await page.getByRole('textbox', { name: /^Greeting/ }).last().fill('And one more thing.');
  await button(page, 'Chat').click();
  await frame.getByText('And one more thing.').first().waitFor();
  await page.getByRole('link', { name: 'Install' }).click(); // the other tab keeps the unsaved changes
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
  await assertClean(page, config);
}

export async function templates(env) {
  const { config } = env;
  const page = await signIn(env, { path: '/templates/new' });
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

  await navigate(page, '/inbox');
  await registerVisitor(config, 'Ada', 'Hello');
  await chatRow(page, 'Ada').click();
  await button(page, 'Send a template').click();
  const picker = dialog(page, 'Send a template');
  await picker.getByLabel('Template').selectOption({ label: 'Order sent' });
  await picker.getByLabel('order').fill('1042');
  await button(picker, 'Send').click();
  await messageWith(page, 'Hello Ada, order 1042 leaves on Monday.').waitFor();
  await assertClean(page, config);
}

export async function streams(env) {
  const { config } = env;
  const page = await signIn(env, { path: '/streams' });
  await page.getByRole('heading', { name: 'INBOUND' }).waitFor();
  await page.getByRole('row').filter({ hasText: 'recorder' }).first().getByText('Up to date').waitFor();
  await page.getByRole('link', { name: 'Live tail' }).click();
  await page.getByText('Live', { exact: true }).waitFor();
  const ada = await openVisitorPage(env, 'Ada');
  await ada.write('trace me');
  await page.locator('.tail-row').filter({ hasText: 'trace me' }).first().waitFor();
  const message = (await api(page, 'GET', `chats/${(await api(page, 'GET', 'chats?q=Ada')).chats[0].id}/messages`)).messages.find((m) => m.data.text === 'trace me');
  await navigate(page, `/streams/trace/${message.id}`);
  await page.getByText('What became of it').waitFor();
  await page.locator('.steps').getByText(/INBOUND #\d+/).waitFor();
  await page.locator('.steps').getByText('In the history').waitFor();
  await page.getByRole('link', { name: 'Dead letters' }).click();
  await page.getByText('No dead letters').waitFor();

  // Publish an event that no consumer can decode.
  const nats = await connect({ servers: config.nats });
  await jetstream(nats).publish(`chat.in.visitor.message.${config.appId}.${message.id}`, 'not an event');
  await nats.close();
  const letters = page.locator('tbody tr');
  await eventually('the event is a dead letter', async () => {
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
  await eventually('the redriven event is a dead letter again', async () => {
    await page.reload();
    await letters.first().waitFor({ timeout: 2000 });
  });
  await page.getByLabel('Choose all').click();
  await button(page, 'Delete').click();
  await dialog(page, 'Delete dead letters?').getByRole('button', { name: /^Delete \d/ }).click();
  await page.getByText(/^\d+ deleted$/).waitFor();
  await assertClean(page, config);
}

export async function people(env) {
  const { config } = env;
  const page = await signIn(env, { path: '/people' });
  const { page: bob, email } = await invite(env, page, 'Bob', 'agent');
  await page.reload();
  await button(page, 'Actions for Bob').click();
  await page.getByRole('menuitem', { name: 'Edit' }).click();
  await page.getByRole('dialog').getByLabel('Role').selectOption('developer');
  await button(page.getByRole('dialog'), 'Save').click();
  await page.getByRole('row').filter({ hasText: email }).getByText('Developer').waitFor();
  await button(page, 'Actions for Bob').click();
  await page.getByRole('menuitem', { name: 'Sessions' }).click();
  await button(dialog(page, 'Sessions of Bob'), 'Sign out everywhere').click();
  await bob.getByText('Your session has ended.').waitFor(); // without a reload
  await bob.getByRole('heading', { name: 'Sign in to Parley' }).waitFor();

  await registerVisitor(config, 'Zoe', 'Please forget me');
  await navigate(page, '/visitors');
  await page.getByLabel('Search by name, email, phone or customer number').fill('zoe');
  await page.getByRole('row').filter({ hasText: 'Zoe' }).waitFor();
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Export Zoe' }).click()]);
  assert.match(await readFile(await download.path(), 'utf8'), /Please forget me/);
  await button(page, 'Erase Zoe').click();
  const erase = dialog(page, 'Erase Zoe?');
  assert.ok(await button(erase, 'Erase for ever').isDisabled(), 'the button is disabled until the word is typed');
  await erase.getByLabel('Type "erase" to confirm').fill('erase');
  await button(erase, 'Erase for ever').click();
  await dialog(page, 'Receipt of erasure').getByText('Everything about this visitor has been erased.').waitFor();
  await button(dialog(page, 'Receipt of erasure'), 'Done').click();
  await page.getByText('No visitor found').waitFor();

  await navigate(page, '/audit');
  await page.getByRole('row').filter({ hasText: 'visitor.erase' }).first().waitFor();
  const changed = page.getByRole('row').filter({ hasText: 'user.update' }).first();
  await changed.getByRole('button').click();
  await page.locator('del').filter({ hasText: 'agent' }).waitFor();
  await page.locator('ins').filter({ hasText: 'developer' }).waitFor();

  await navigate(page, '/account');
  await button(page, 'Set up').click();
  await page.getByLabel('Current password').last().fill('wrong password');
  await button(page, 'Next').click();
  await page.getByText('The password is wrong.').waitFor();
  await page.getByRole('dialog').getByLabel('Current password').fill(config.password);
  await button(page, 'Next').click();
  const key = (await page.getByRole('region', { name: 'Setup key' }).textContent()).replace(/\s/g, '');
  await page.getByRole('dialog').getByLabel('Authentication code').fill(oneTimeCode(key, 0));
  await page.getByRole('img', { name: 'QR code of the setup key' }).waitFor();
  await button(page, 'Confirm').click();
  await page.getByText('Two-factor authentication is on').waitFor();
  const recovery = dialog(page, 'Recovery codes');
  const [recoveryCode] = (await recovery.getByRole('region', { name: 'Recovery codes' }).textContent()).split('\n');
  await recovery.getByLabel('I have stored them in a safe place').click();
  await button(recovery, 'Done').click();
  await button(page, 'Sign out everywhere').click();
  await button(dialog(page, 'Sign out everywhere'), 'Sign out everywhere').click();
  await page.getByLabel('Email').fill(config.email);
  await page.getByLabel('Password', { exact: true }).fill(config.password);
  await button(page, 'Sign in').click();
  await page.getByLabel('Authentication code').fill('000000');
  await button(page, 'Sign in').click();
  await page.getByText('That code is wrong or has expired.').waitFor();
  await page.getByLabel('Authentication code').fill(recoveryCode);
  await button(page, 'Sign in').click();
  await waitForHeading(page, 'Your account'); // the page before the sign-in
  await assertClean(page, config);
}

/** Returns the RFC 6238 code of the current period, or of a later one. */
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
export async function companies(env) {
  const { config } = env;
  const page = await signIn(env);
  await page.getByText('Live', { exact: true }).waitFor();
  await button(page, 'Company: Demo Company').click();
  await page.getByRole('menuitem', { name: 'New company' }).click();
  await page.getByLabel('Company name').fill('Globex');
  await button(page, 'Create company').click();
  await page.getByText('No open chats').waitFor();
  await page.getByText('Live', { exact: true }).waitFor();
  await navigate(page, '/applications');
  await page.getByText('No applications yet').waitFor();
  await button(page, 'New application').first().click();
  await page.getByLabel('Title').fill('Globex help');
  await page.getByLabel('Bot name').fill('Glo');
  await button(page, 'Create application').click();
  await page.frameLocator('iframe').getByText('Hello! How can we help you?').first().waitFor();
  await registerVisitor(config, 'Ada', 'For the demo company');
  await navigate(page, '/inbox');
  await button(page, 'Company: Globex').click();
  await page.getByRole('menuitemradio', { name: 'Demo Company' }).click();
  await chatRow(page, 'Ada').waitFor();
  await page.getByText('Live', { exact: true }).waitFor();
  await page.reload();
  await button(page, 'Company: Demo Company').waitFor(); // the selection is stored
  await assertClean(page, config);
}

const makeChat = (i) => ({
  id: `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`, companyId: '1', appId: '1', appName: 'Shop', channel: 'widget', status: 'active', createdAt: new Date(1.7e12).toISOString(), activityAt: new Date(1.75e12 - i * 60_000).toISOString(),
  windowExpiresAt: new Date(Date.now() + 1e7).toISOString(), inWindow: true, unread: i % 9 === 0, control: 'bot', assignee: null, visitor: { id: `v${i}`, name: `Visitor ${i}` }, lastMessage: null,
});

/** A webhook endpoint is created, tested, filtered, fails, is enabled again, replayed, rotated, disabled and deleted. */
export async function webhooks(env) {
  const { config } = env;
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
  const awaitRequests = (n) => eventually(`the endpoint has received ${n} requests`, async () => assert.equal(received.length, n));
  const chooseAction = async (page, item) => {
    await button(page, `Actions for ${url}`).click();
    await page.getByRole('menuitem', { name: item, exact: true }).click();
  };

  const page = await signIn(env, { path: '/webhooks' });
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
  await ready.waitFor(); // Escape does not close the dialog with the secret
  await button(ready, 'I have copied it').click();
  assert.ok(!(await page.content()).includes(secret), 'the secret is no longer in the page');
  const entry = page.getByRole('row').filter({ hasText: url });
  await entry.getByText('message.received').waitFor();
  await entry.getByText('Enabled').waitFor();

  await chooseAction(page, 'Send a test');
  await waitForHeading(page, 'Deliveries');
  await awaitRequests(1);
  assert.equal(new Webhook(secret).verify(received[0].body, received[0].headers).type, 'webhook.test');
  assert.equal(received[0].headers['x-api-key'], 'let me in');
  const delivery = page.getByRole('row').filter({ hasText: 'webhook.test' });
  await delivery.getByText('Delivered').waitFor();
  await delivery.getByText('204 ·').waitFor();
  await registerVisitor(config, 'Ada', 'Where is my order?');
  await awaitRequests(2);
  assert.equal(JSON.parse(received[1].body).data.message.data.text, 'Where is my order?');

  status = 410;
  await button(page, 'Send a test').click();
  await awaitRequests(3);
  const failed = page.getByRole('row').filter({ hasText: 'answered 410' });
  await button(failed, 'webhook.test').click();
  const detail = dialog(page, 'webhook.test');
  await detail.getByText('No room here').waitFor();
  await detail.getByRole('region', { name: 'Body' }).getByText('"webhook.test"').waitFor();
  await button(detail, 'Close').last().click();

  status = 204;
  await page.getByRole('link', { name: 'Webhooks' }).first().click();
  await entry.getByText('answered 410').waitFor();
  await chooseAction(page, 'Enable');
  await entry.getByText('Enabled').waitFor();
  await chooseAction(page, 'Deliveries');
  await page.getByLabel('Status').selectOption('failed');
  await button(page, 'Replay failed ones').click();
  await dialog(page, 'Replay failed ones').getByText('1 delivery will be sent again').waitFor();
  await button(dialog(page, 'Replay failed ones'), 'Replay').click();
  await awaitRequests(4);
  assert.equal(received[3].headers['webhook-id'], received[2].headers['webhook-id']);
  await page.getByLabel('Status').selectOption('');
  await eventually('all deliveries are delivered', async () => assert.equal(await page.getByRole('row').getByText('Delivered', { exact: true }).count(), 3));

  await page.getByRole('link', { name: 'Webhooks' }).first().click();
  await chooseAction(page, 'Rotate secret');
  await button(dialog(page, 'Rotate the secret'), 'Rotate secret').click();
  const second = await dialog(page, 'The endpoint is ready').getByRole('region', { name: 'Secret' }).textContent();
  await button(dialog(page, 'The endpoint is ready'), 'I have copied it').click();
  await chooseAction(page, 'Send a test');
  await awaitRequests(5);
  for (const key of [secret, second]) new Webhook(key).verify(received[4].body, received[4].headers);

  await page.getByRole('link', { name: 'Webhooks' }).first().click();
  await chooseAction(page, 'Edit');
  const edit = dialog(page, 'Edit endpoint');
  await edit.getByText('Set: X-Api-Key.').waitFor();
  await edit.getByLabel('Description').fill('Order system, new');
  await button(edit, 'Save').click();
  await entry.getByText('Order system, new').waitFor();
  await chooseAction(page, 'Disable');
  await button(dialog(page, 'Disable this endpoint?'), 'Disable').click();
  await entry.getByText('disabled by a user').waitFor();
  await chooseAction(page, 'Delete');
  await button(dialog(page, 'Delete this endpoint?'), 'Delete').click();
  await page.getByText('No webhook endpoints yet').waitFor();

  const { page: agent } = await invite(env, page, 'Bob', 'agent');
  assert.equal(await agent.getByRole('link', { name: 'Webhooks' }).count(), 0, 'an agent does not see the webhooks');
  receiver.close();
  await assertClean(page, config);
}

/** A list of 100,000 chats: the document stays small, and each page is requested once. */
export async function scale(env) {
  const { config, report } = env;
  const total = 100_000;
  const cursors = [];
  const page = await signIn(env, {
    before: (p) => p.route(/\/api\/chats\?/, (route) => {
      const from = Number(new URL(route.request().url()).searchParams.get('cursor') ?? 0);
      cursors.push(from);
      const size = 5000; // larger than the server's page size, to shorten the test
      return route.fulfill({ json: { chats: Array.from({ length: Math.min(size, total - from) }, (_, i) => makeChat(from + i)), next: from + size < total ? String(from + size) : null } });
    }),
  });
  const list = page.locator('.virtual');
  await chatRow(page, 'Visitor 0').first().waitFor();
  const start = Date.now();
  for (let n = 0; n < total / 5000 - 1; n++) {
    await list.evaluate((e) => (e.scrollTop = e.scrollHeight));
    await eventually(`page ${n + 2} is requested`, async () => assert.ok(cursors.length > n + 1));
  }
  await eventually('the last chat is shown', async () => {
    await list.evaluate((e) => (e.scrollTop = e.scrollHeight));
    await chatRow(page, `Visitor ${total - 1}`).waitFor({ timeout: 500 });
  });
  report(`scrolled through 100,000 chats in ${Date.now() - start} ms`);
  assert.ok((await page.locator('a.chat-row').count()) < 60, 'only rows near the viewport are in the document');
  assert.equal(new Set(cursors).size, cursors.length, 'each page is requested once');
  await assertClean(page, config);
}

/** Without live events the page shows that it is not live, and catches up later. A reply whose response is lost is stored once. */
export async function notLive(env) {
  const { config } = env;
  let blocked = false;
  const page = await signIn(env, { before: (p) => p.route(/\/api\/events/, (route) => (blocked ? route.abort() : route.continue())) });
  await page.getByText('Live', { exact: true }).waitFor();
  blocked = true;
  await page.context().setOffline(true);
  await page.getByText('You are offline. What you see may be old.').waitFor();
  await page.getByText('Not live', { exact: true }).waitFor();
  await page.context().setOffline(false);
  await page.getByText('Not live: new messages may be missing.').waitFor();
  await registerVisitor(config, 'Eve', 'Written while you were away');
  blocked = false;
  await chatRow(page, 'Eve').waitFor();
  await page.getByText('Live', { exact: true }).waitFor();

  const keys = [];
  await page.route(/\/api\/chats\/[^/]+\/messages/, async (route) => {
    if (route.request().method() !== 'POST') return route.continue();
    keys.push(route.request().headers()['idempotency-key']);
    if (keys.length > 1) return route.continue();
    await route.fetch(); // the server receives the request, but the response is lost
    return route.abort();
  });
  await chatRow(page, 'Eve').click();
  await reply(page).fill('Only once');
  await reply(page).press('Enter');
  await eventually('the reply is sent again', async () => assert.equal(keys.length, 2));
  await page.locator('.pending').waitFor({ state: 'detached' });
  assert.equal(keys[0], keys[1]);
  const { messages } = await api(page, 'GET', `chats/${(await api(page, 'GET', 'chats?q=Eve')).chats[0].id}/messages`);
  assert.equal(messages.filter((m) => m.data.text === 'Only once').length, 1);
  assert.equal(await log(page).getByText('Only once').count(), 1);
  assert.deepEqual(page.errors, []);
}

/** Checks each screen with axe and takes a screenshot: light and dark on a desktop, and light on a phone. */
export async function screens(env) {
  const { config, report } = env;
  const page = await signIn(env, { viewport: { width: 1440, height: 900 } });
  const ada = await openVisitorPage(env, 'Ada');
  await ada.write('Hello, where is my parcel?');
  await registerVisitor(config, 'Katherine', 'Do you ship to Portugal?');
  await registerVisitor(config, 'Margaret', 'Can I change the address of order 1042?');
  await registerVisitor(config, 'Radia', 'Thank you, the evening is fine.');
  const token = await api(page, 'POST', 'tokens', { name: 'Order system' });
  assert.ok(token.secret);
  const template = await api(page, 'POST', 'templates', { name: 'Order sent', text: 'Hello {{username}}, order {{order}} is on its way.', parameters: [{ name: 'order', default: '' }] });
  await api(page, 'POST', `templates/${template.id}/submit`, {});
  const webhook = await api(page, 'POST', 'webhooks', { url: 'https://crm.example/parley', description: 'Order system', events: ['message.received', 'chat.closed'], headers: { 'X-Api-Key': 'let me in' } });
  await api(page, 'POST', 'users', { email: 'grace@example.com', name: 'Grace Hopper', role: 'agent' });
  await api(page, 'POST', 'users', { email: 'linus@example.com', name: 'Linus Bell', role: 'developer' });
  await chatRow(page, 'Ada').click();
  await messageWith(page, 'Hello, where is my parcel?').waitFor();
  await reply(page).fill('I look for it. One moment, please.');
  await reply(page).press('Enter');
  await ada.messageWith('I look for it.').waitFor();
  const { chats } = await api(page, 'GET', 'chats?q=Ada');
  const { messages } = await api(page, 'GET', `chats/${chats[0].id}/messages`);
  const shown = [
    ['inbox', `/inbox/${chats[0].id}`, () => messageWith(page, 'I look for it.').waitFor()],
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
  let checked = 0;
  const checkScreen = async (name) => {
    checked++;
    await loadAxe(page);
    const { violations } = await page.evaluate((runOnly) => window.axe.run(document, { iframes: false, runOnly }), axeRules);
    assert.deepEqual(violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html.slice(0, 120)).join(' | ')}`), [], `axe has no findings on ${name}`);
    await page.screenshot({ path: join(config.shots, `panel-${name}.png`) });
  };
  for (const [suffix, scheme, viewport] of [['', 'light', { width: 1440, height: 900 }], ['-dark', 'dark', { width: 1440, height: 900 }], ['-phone', 'light', { width: 390, height: 800 }]]) {
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' });
    await page.setViewportSize(viewport);
    for (const [name, path, ready] of shown) {
      await navigate(page, path);
      await ready();
      await checkScreen(name + suffix);
    }
  }
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' });
  await navigate(page, '/tokens');
  await button(page, 'New token').click();
  await checkScreen('dialog');
  await page.keyboard.press('Escape');
  await navigate(page, '/webhooks');
  await button(page, 'New endpoint').click();
  await button(page, 'Only some').click();
  await checkScreen('webhook-dialog');
  await page.keyboard.press('Escape');
  await navigate(page, `/inbox/${chats[0].id}`);
  await button(page, 'Filters').click();
  await button(page, 'Details').click();
  await checkScreen('filters');
  for (const opens of ['Offer choices', 'Send a template', 'Keyboard shortcuts', 'Notifications']) {
    await button(page, opens).click();
    await dialog(page, opens).waitFor();
    await checkScreen(opens.toLowerCase().replaceAll(' ', '-'));
    await page.keyboard.press('Escape');
  }
  await page.getByRole('button', { name: 'your account, theme and sign-out' }).click();
  await checkScreen('menu');
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'Sign in to Parley' }).waitFor();
  await checkScreen('sign-in');
  report(`axe: 0 findings on ${checked} screens`);
}

/** Whether two elements of the page share a point. */
const overlaps = (page, a, b) => page.evaluate(([a, b]) => {
  const [x, y] = [a, b].map((s) => document.querySelector(s).getBoundingClientRect());
  return x.left < y.right && y.left < x.right && x.top < y.bottom && y.top < x.bottom;
}, [a, b]);

/** Without a bot every visitor waits for an agent: the queue, assignment, closing with undo, and the next conversation. */
export async function queue(env) {
  const { config } = env;
  const shot = (page, name) => page.screenshot({ path: join(config.shots, `panel-${name}.png`), caret: 'initial' }); // hiding it would add styles
  const first = await signIn(env);
  const { page: bob } = await invite(env, first, 'Bob', 'agent');
  await navigate(first, '/inbox?view=waiting');
  await first.getByText('Live', { exact: true }).waitFor();
  await first.getByText('No chat is waiting').waitFor();
  const ada = await openVisitorPage(env, 'Ada');
  await ada.write('Where is my parcel?');
  await chatRow(first, 'Ada').getByText(/^waits /).waitFor();
  await chatRow(first, 'Ada').getByText('Where is my parcel?').waitFor();
  await ada.messageWith('You are being connected to the team.').waitFor();
  await registerVisitor(config, 'Cleopatra Maximiliane Featherstonehaugh', 'And mine?', { email: `cleo${unique()}@example.com` });
  await chatRow(first, 'Cleopatra').getByText('And mine?').waitFor();
  assert.match(await first.locator('a.chat-row').first().textContent(), /Ada/, 'the longest wait is at the top');
  await eventually('the tab counts two waiting chats', async () => assert.match(await first.getByRole('button', { name: /^Waiting/ }).textContent(), /2/));
  await eventually('the title counts two chats', async () => assert.match(await first.title(), /^\(2\) Inbox/));
  await shot(first, 'waiting');

  // The header fits: with the details at 1280 pixels, and on a phone.
  await chatRow(first, 'Cleopatra').click();
  await first.getByText('Waiting for an agent').waitFor();
  await button(first, 'Details').click();
  await first.setViewportSize({ width: 1280, height: 800 });
  await shot(first, 'details-1280');
  assert.equal(await overlaps(first, '.conv-title p', '.conv-actions'), false, 'the header at 1280 pixels');
  await first.getByRole('complementary', { name: 'Details' }).getByRole('button', { name: 'Close' }).click();
  await first.setViewportSize({ width: 390, height: 800 });
  await shot(first, 'chat-390');
  assert.equal(await overlaps(first, '.conv-title p', '.conv-actions'), false, 'the header at 390 pixels');
  assert.equal(await first.evaluate(() => document.documentElement.scrollWidth > innerWidth), false, 'nothing is wider than a phone');
  await navigate(first, '/visitors');
  await first.getByRole('button', { name: /^Erase/ }).first().waitFor();
  await shot(first, 'visitors-390');
  const erase = await first.getByRole('button', { name: /^Erase/ }).first().boundingBox();
  assert.ok(erase.x >= 0 && erase.x + erase.width <= 390, `Erase is on the screen of a phone, got ${JSON.stringify(erase)}`);
  await first.setViewportSize({ width: 1280, height: 800 });

  // The id of a message leads to its trace.
  await navigate(first, '/inbox?view=waiting');
  await chatRow(first, 'Ada').click();
  await messageWith(first, 'Where is my parcel?').hover();
  await button(first, 'Message details').first().click();
  assert.match(await dialog(first, 'Message details').getByRole('region', { name: 'Message id' }).textContent(), /^[0-9a-f-]{36}$/);
  await shot(first, 'message');
  assert.match(await dialog(first, 'Message details').getByRole('link', { name: 'Trace a message' }).getAttribute('href'), /^#\/streams\/trace\/[0-9a-f-]{36}$/);
  await first.keyboard.press('Escape');

  // Bob hears that the chat is his, also in another section.
  await navigate(bob, '/account');
  await waitForHeading(bob, 'Your account');
  await button(first, 'Details').click();
  await first.getByRole('complementary', { name: 'Details' }).getByLabel('Assignee').selectOption({ label: 'Bob' });
  await bob.getByText(/assigned you the chat with Ada\./).waitFor();
  await shot(bob, 'assigned');
  await button(bob, 'Open').click();
  await bob.getByText('With you').waitFor();
  await eventually('the waiting list has one chat', async () => assert.match(await first.getByRole('button', { name: /^Waiting/ }).textContent(), /1/));

  // A close can be undone, and is sent when the page is left.
  await button(bob, 'Close').click();
  await chatRow(bob, 'Ada').waitFor({ state: 'detached' });
  await shot(bob, 'closed');
  await button(bob, 'Undo').click();
  await bob.getByText('With you').waitFor();
  await chatRow(bob, 'Ada').waitFor();
  await button(bob, 'Close').click();
  await chatRow(bob, 'Ada').waitFor({ state: 'detached' });
  await bob.reload();
  await first.getByText('This chat is closed.').waitFor();

  // The next conversation: agents see the one before, and who had it.
  await ada.write('One more question');
  await navigate(first, '/inbox?view=waiting');
  await chatRow(first, 'Ada').filter({ hasText: 'One more question' }).click();
  await first.getByText('Bob had this visitor’s last chat.').waitFor();
  await first.getByRole('region', { name: 'Earlier conversations' }).getByText(/With Bob/).waitFor();
  await shot(first, 'earlier');
  await button(first, 'Assign to Bob').click();
  await first.getByText('With Bob', { exact: true }).first().waitFor();
  for (const page of [first, bob]) await assertClean(page, config);
}
