// The widget in a run with faults: the Go test sends commands, one JSON object per line, and each gets one line of JSON as its answer.
//
//   {"op":"write","text":"..."}  {"id":"...","seen":["...", ...]}  id: of the message; empty: it was not accepted in time
//   {"op":"offline"}             {}
//   {"op":"online"}              {}
//   {"op":"await","id":"...","patience":1000}  {}                  when the message is shown, or not in so many milliseconds
//   {"op":"show"}                {"messages":[{"id":"...","text":"...","isMine":true,"isCut":false}, ...]}
//   {"op":"end"}

import assert from 'node:assert/strict';
import { write } from '../page.mjs';
import { ids, register, rows } from './shared.mjs';

/** How long the visitor waits for one message to be accepted, in milliseconds. */
const PATIENCE = 10_000;

/** How many of the newest messages on the screen a written one names. */
const SEEN = 5;

const log = (page) => page.locator('[role=log]');

const isThere = (locator, timeout) => locator.first().waitFor({ state: 'attached', timeout }).then(() => true, () => false);

const operations = {
  async write(page, { text }) {
    const seen = (await ids(page)).slice(-SEEN);
    await write(page, text);
    const accepted = log(page).locator('article.mine[data-id]').filter({ hasText: text });
    const id = (await isThere(accepted, PATIENCE)) ? await accepted.first().getAttribute('data-id') : '';
    return { id, seen };
  },
  async offline(page) {
    await page.context().setOffline(true);
    return {};
  },
  async online(page) {
    await page.context().setOffline(false);
    return {};
  },
  async await(page, { id, patience }) {
    await isThere(log(page).locator(`article[data-id="${id}"]`), patience);
    return {};
  },
  async show(page) {
    return { messages: await shown(page) };
  },
};

const rendered = (page) =>
  rows(page).evaluateAll((all) =>
    all.map((e) => ({
      id: e.dataset.id,
      text: e.querySelector('.words')?.textContent ?? '',
      isMine: e.classList.contains('mine'),
      isCut: !!e.querySelector('.foot'),
    })),
  );

/** Scrolls up from the end to the beginning, because only the pages around the viewport are rendered. Returns all messages in their order. */
async function shown(page) {
  const all = await rendered(page);
  const start = log(page).getByText('This is the beginning of the conversation.');
  for (;;) {
    const isAtStart = (await start.count()) > 0 && (await log(page).evaluate((e) => e.scrollTop === 0));
    const now = await rendered(page);
    const known = now.findIndex((m) => m.id === all[0].id);
    assert.ok(known >= 0, 'two screens overlap');
    all.unshift(...now.slice(0, known));
    if (isAtStart) return all;
    await log(page).evaluate((e) => { e.scrollTop -= e.clientHeight / 2; });
    await page.waitForTimeout(100); // pages are loaded and rendered
  }
}

/** A visitor opens the chat, registers, and does what the test says. */
export async function visit({ config, open, report, nextCommand }) {
  const page = await open();
  const email = await register(page);
  const { token } = await page.evaluate((key) => JSON.parse(localStorage.getItem(key)), `parley.${config.appId}`);
  report(JSON.stringify({ token, email }));
  for (;;) {
    const command = JSON.parse(await nextCommand());
    if (command.op === 'end') break;
    report(JSON.stringify(await operations[command.op](page, command)));
  }
  assert.deepEqual(page.errors, []);
}
