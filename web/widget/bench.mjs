// Benchmarks the widget in Chromium against a running standalone, in browser contexts with an empty cache:
//
//   make run, then: node web/widget/bench.mjs http://127.0.0.1:8082
//
//   bare page    from pointerdown on a button until the field that its click handler appends is painted: the baseline of the machine
//   first open   from pointerdown on the launcher until the first form field is painted
//   typing       from keydown until the next frame is painted, with 2,000 messages loaded

import { chromium } from 'playwright-core';

const base = process.argv[2] ?? 'http://127.0.0.1:8082';
const turns = Number(process.argv[3] ?? 20);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu'],
});

const shadowOf = (page) => page.evaluateHandle(() => document.querySelector('body > div:last-of-type').shadowRoot);
const ready = (page) => page.waitForFunction(() => window.Parley?.open);

function report(name, values, target) {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))].toFixed(0);
  console.log(
    `${name}: median ${at(0.5)} ms, p90 ${at(0.9)} ms, worst ${at(1)} ms of ${values.length}${target ? `; target ${target} ms` : ''}`,
  );
}

/** Measures the first open, in milliseconds. */
async function firstOpen() {
  const page = await newPage();
  await page.goto(`${base}/demo`);
  await ready(page);
  const took = await clickToPaint(page, await shadowOf(page), page.getByRole('button', { name: 'Open chat' }));
  if (process.env.WATERFALL)
    console.log(
      await page.evaluate(() =>
        performance
          .getEntriesByType('resource')
          .map((r) => `${new URL(r.name).pathname} ${r.startTime.toFixed(0)}-${r.responseEnd.toFixed(0)}`)
          .join('\n'),
      ),
    );
  await page.context().close();
  return took;
}

/** Measures the baseline: a click that appends one field. */
async function barePage() {
  const page = await newPage();
  await page.setContent('<button>Open</button><form class="card"></form>');
  await page.evaluate(() => {
    document.querySelector('button').onclick = () =>
      document.querySelector('form').append(document.createElement('input'));
  });
  const took = await clickToPaint(page, await page.evaluateHandle(() => document), page.locator('button'));
  await page.context().close();
  return took;
}

const newPage = async () =>
  (await browser.newContext({ viewport: { width: 1100, height: 850 }, locale: 'en-US' })).newPage();

/** Clicks the button. Returns the time from pointerdown until the first form field is painted, in milliseconds. */
async function clickToPaint(page, root, button) {
  const seen = page.evaluate(
    (root) =>
      new Promise((done) => {
        let at = 0;
        addEventListener(
          'pointerdown',
          (e) => {
            at = e.timeStamp;
          },
          { capture: true, once: true },
        );
        new MutationObserver((_, observer) => {
          const field = root.querySelector('form.card input');
          if (!field?.offsetHeight) return;
          observer.disconnect();
          requestAnimationFrame(() => {
            const painted = new MessageChannel();
            painted.port1.onmessage = () => done(performance.now() - at);
            painted.port2.postMessage(0);
          });
        }).observe(root, { childList: true, subtree: true, attributes: true });
      }),
    root,
  );
  const box = await button.boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.mouse.down();
  await page.mouse.up();
  return seen;
}

/** Measures typing with the whole history loaded and the transcript scrolled to its middle. */
async function typing() {
  const start = Date.parse('2026-01-01T10:00:00Z');
  const all = Array.from({ length: 2000 }, (_, n) => ({
    id: `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`,
    createdAt: new Date(start + n * 400_000).toISOString(),
    type: 'TEXT',
    data: { text: `message ${n} ${'with some words '.repeat(n % 7)}` },
    nameOfSender: 'Polly',
    isFromSupport: n % 3 !== 0,
  }));
  const page = await newPage();
  const headers = { 'Access-Control-Allow-Origin': '*', 'Access-Control-Expose-Headers': 'Link' };
  await page.route(/\/message\?/, (route) => {
    const query = new URL(route.request().url()).searchParams;
    const end = query.has('before') ? all.findIndex((m) => m.id === query.get('before')) : all.length;
    const from = Math.max(0, end - Number(query.get('limit')));
    return route.fulfill({
      json: all.slice(from, end),
      headers: { ...headers, ...(from && { Link: `<?before=${all[from].id}>; rel="next"` }) },
    });
  });
  await page.route(/\/read$/, (route) => route.fulfill({ status: 204, headers }));
  await page.goto(`${base}/demo`);
  await ready(page);
  await page.evaluate(() => Parley.open());
  await page.getByLabel('First name').fill('Ada');
  await page.getByLabel('Email').fill(`bench${Date.now()}@example.com`);
  await page.getByRole('button', { name: 'Start the chat' }).click();
  const log = page.locator('[role=log]');
  await log.getByText('message 1999').waitFor();
  const shadow = await shadowOf(page);
  await page.waitForFunction(
    (root) => {
      const scroller = root.querySelector('[role=log]');
      if (scroller.scrollTop > 500) scroller.scrollTop = 0;
      return scroller.textContent.includes('This is the beginning of the conversation.');
    },
    shadow,
    { timeout: 120_000, polling: 50 },
  );
  await log.evaluate((e) => {
    e.scrollTop = e.scrollHeight / 2;
  });
  await page.getByLabel('Your message').focus();
  await page.evaluate((root) => {
    window.took = [];
    root.querySelector('textarea').addEventListener('keydown', (e) =>
      requestAnimationFrame(() => {
        const painted = new MessageChannel();
        painted.port1.onmessage = () => took.push(performance.now() - e.timeStamp);
        painted.port2.postMessage(0);
      }),
    );
  }, shadow);
  await page.keyboard.type('The quick brown fox jumps over the lazy dog. '.repeat(3), { delay: 40 });
  const took = await page.evaluate(() => took);
  await page.close();
  return took;
}

const results = { bare: [], open: [] };
await firstOpen(); // warm up the server
for (let n = 0; n < turns; n++) {
  results.bare.push(await barePage());
  results.open.push(await firstOpen());
}
report('bare page', results.bare);
report('first open', results.open, 300);
report('typing with 2,000 messages', await typing(), 50);
await browser.close();
