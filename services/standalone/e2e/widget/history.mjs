// Scenarios of the chat widget: long histories. widget.mjs runs one exported function.

import assert from 'node:assert/strict';
import { eventually } from '../page.mjs';
import { composer, messageWith, register, rows, texts, withHistory } from './shared.mjs';

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

/** The beginning of the chat leaves the rendered part, and comes back, at each height of the window: the note above it must not decide that. */
export async function heights({ config, open, report }) {
  const start = Date.parse('2026-01-01T10:00:00Z');
  const all = Array.from({ length: 36 }, (_, n) => ({
    id: `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`, createdAt: new Date(start + n * 1_000).toISOString(), type: 'TEXT',
    data: { text: `message ${n}` }, nameOfSender: 'Polly', isFromSupport: n % 2 !== 0,
  }));
  const page = await open({ url: `${config.base}/demo`, before: (p) => withHistory(p, all) });
  await register(page);
  await messageWith(page, 'message 35').waitFor();
  const beginning = messageWith(page, 'This is the beginning of the conversation.');
  await eventually('the beginning is loaded', async () => {
    await page.locator('[role=log]').evaluate((e) => { e.scrollTop = 0; });
    assert.ok(await beginning.isVisible());
  });
  await page.getByRole('button', { name: 'Go to the newest' }).click();
  const rendered = new Set();
  for (let height = 900; height >= 300; height -= 4) {
    await page.setViewportSize({ width: 1100, height });
    const alive = page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
    const late = new Promise((_, fail) => setTimeout(() => fail(new Error(`the page hangs at the height ${height}`)), 10_000));
    await Promise.race([alive, late]);
    rendered.add(await rows(page).count());
  }
  assert.ok(rendered.size > 1, `the beginning is rendered at some heights only: ${[...rendered]}`);
  assert.deepEqual(page.errors, []);
  report('widget: no height of the window makes the list render for ever');
}
