// Uses a page as people do, in Debian's Chromium: one scenario of widget_scenarios.mjs, or of the module that the configuration names.
//
//   node widget.mjs '{"scenario":"flow","site":"http://...","base":"http://...","appId":"...","executable":"chromium","shots":"a folder", ...}'
//
// What it measures goes to stdout, a line each, and "done" at the end. A failed check ends it with its words and exit code 1.

import { chromium } from 'playwright-core';
import { createInterface } from 'node:readline';

const config = JSON.parse(process.argv[2]);
const scenarios = await import(config.module ?? './widget_scenarios.mjs');
const args = ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--autoplay-policy=no-user-gesture-required'];
const browser = await chromium.launch({ executablePath: config.executable, headless: true, args });
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/** A browser context with a page on it that reports what must not happen. */
async function open({ url = config.site, ready = true, ...options } = {}) {
  const context = options.context ?? (await browser.newContext({ viewport: { width: 1100, height: 850 }, locale: 'en-US', ...options }));
  context.setDefaultTimeout(30_000);
  const page = await context.newPage();
  page.faults = [];
  page.asked = [];
  page.on('pageerror', (err) => page.faults.push(`page: ${err.message}`));
  page.on('request', (r) => page.asked.push(r.url()));
  await page.addInitScript(() => {
    window.violations = [];
    document.addEventListener('securitypolicyviolation', (e) => window.violations.push(`${e.violatedDirective} ${e.blockedURI}`));
  });
  await options.before?.(page);
  if (url) await page.goto(url);
  if (url && ready) await page.waitForFunction(() => window.Parley?.open);
  return page;
}

const say = (line) => process.stdout.write(line + '\n');
const next = async () => (await lines.next()).value;

let failed = false;
try {
  await scenarios[config.scenario]({ config, browser, open, say, next });
} catch (err) {
  failed = true;
  process.stderr.write(`${err.stack}\n`);
}
await browser.close();
if (!failed) say('done');
process.exit(failed ? 1 : 0);
