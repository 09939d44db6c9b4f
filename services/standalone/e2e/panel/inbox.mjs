// Scenarios of the panel: the inbox and its conversations. widget.mjs runs one exported function.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { button, chatRow, eventually, holdPosts, listMarks, png, signIn, unique, write } from '../page.mjs';
import { api, assertClean, dialog, invite, log, messageWith, navigate, openVisitorPage, registerVisitor, reply, waitForHeading } from './shared.mjs';

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
  const releasePost = await holdPosts(page, /\/api\/chats\/[^/]+\/messages/);
  await page.keyboard.press('r');
  assert.equal(await page.evaluate(() => document.activeElement?.getAttribute('aria-label')), 'Your reply');
  await page.keyboard.type('jar? no: r, t and e are letters here');
  await page.keyboard.press('Enter');
  await messageWith(page, 'jar? no: r, t and e are letters here').waitFor();
  await page.keyboard.press('Escape');
  const focus = (attribute) => page.evaluate((name) => document.activeElement?.getAttribute(name) ?? '', attribute);
  await eventually('Escape moves the focus to the messages', async () => assert.equal(await focus('role'), 'log'));
  await page.keyboard.press('ArrowUp');
  await eventually('the pending message has the focus', async () => assert.match(await focus('aria-label'), /Sending/));
  releasePost();
  await page.locator('article.pending').waitFor({ state: 'detached' });
  await eventually('the sent message has the focus of the pending one', async () => {
    const focused = await page.evaluate(() => [document.activeElement?.tagName, document.activeElement?.textContent]);
    assert.equal(focused[0], 'ARTICLE', 'the focus stays in the messages');
    assert.match(focused[1], /r, t and e are letters here/);
  });
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

const makeChat = (i) => ({
  id: `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`, companyId: '1', appId: '1', appName: 'Shop', channel: 'widget', status: 'active', createdAt: new Date(1.7e12).toISOString(), activityAt: new Date(1.75e12 - i * 60_000).toISOString(),
  windowExpiresAt: new Date(Date.now() + 1e7).toISOString(), inWindow: true, unread: i % 9 === 0, control: 'bot', assignee: null, visitor: { id: `v${i}`, name: `Visitor ${i}` }, lastMessage: null,
});

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
    await eventually(`page ${n + 2} is requested`, async () => {
      await list.evaluate((e) => (e.scrollTop = e.scrollHeight)); // again when the page before has been shown
      assert.ok(cursors.length > n + 1);
    });
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

/** An agent sees a bot's answer as the visitor does: drawn, and in lists as one line without marks. What people write stays as it is. */
export async function markdown(env) {
  const { config } = env;
  const agent = await signIn(env);
  await navigate(agent, '/inbox');
  await registerVisitor(config, 'Ada', '**Where** is `it`?');
  await chatRow(agent, 'Ada').waitFor();
  const { chats } = await api(agent, 'GET', 'chats');
  const send = (data) =>
    fetch(`${config.clientBase}/message/send`, { method: 'POST', headers: { 'Content-Type': 'application/json', 'x-access-token': config.accessToken }, body: JSON.stringify({ type: 'TEXT', chatId: chats[0].id, data }) });
  const refused = await send({ text: 'x', format: 'html' });
  assert.deepEqual([refused.status, (await refused.json()).details], [400, [{ field: 'data.format', message: 'must be one of markdown, plain' }]]);
  const text = readFileSync(new URL('../markdown.txt', import.meta.url), 'utf8');
  assert.ok((await send({ text, format: 'markdown' })).ok);
  await chatRow(agent, 'Ada').getByText('Your order It has free delivery, see our shop').waitFor();

  await chatRow(agent, 'Ada').click();
  const drawn = log(agent).locator('.md');
  await drawn.locator('pre').getByText('# **no marks**').waitFor();
  assert.deepEqual(await listMarks(drawn), ['decimal', 'disc', 'disc', 'decimal']);
  assert.equal(await drawn.getByRole('link', { name: 'our shop' }).getAttribute('href'), 'https://shop.example.com/a_b');
  assert.deepEqual([await drawn.locator('a').count(), await drawn.locator('img').count()], [2, 0]);
  await messageWith(agent, '**Where** is `it`?').waitFor();
  await reply(agent).fill('**It** is here.');
  await reply(agent).press('Enter');
  await messageWith(agent, '**It** is here.').waitFor();
  await assertClean(agent, config);
  await agent.screenshot({ path: join(config.shots, 'panel-markdown.png') });
}
