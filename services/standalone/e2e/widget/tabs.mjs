// Scenarios of the chat widget: tabs of one browser. widget.mjs runs one exported function.

import assert from 'node:assert/strict';
import { abortRoute, eventually, unique, write } from '../page.mjs';
import { cors, ids, launcher, messageWith, register, rows, sendFromCompany, texts } from './shared.mjs';

const socketRequests = (page) => page.requestedUrls.filter((u) => u.includes('/socket.io/')).length;

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
    const { token } = JSON.parse(localStorage.getItem(Object.keys(localStorage).find((k) => /^parley\.[^.]+$/.test(k))));
    return (await fetch(`${new URL(document.querySelector('script[data-app-id]').src).origin}/message?limit=50`, { headers: { Authorization: `Bearer ${token}` } })).json();
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
