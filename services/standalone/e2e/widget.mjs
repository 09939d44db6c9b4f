// Runs one scenario in Chromium: a function exported by the module in the configuration.
//
//   node widget.mjs '{"module":"./widget/session.mjs","scenario":"flow","site":"http://...","base":"http://...","appId":"...","executable":"chromium","shots":"a folder", ...}'
//
// It prints each measurement as a line on stdout, and "done" at the end. A failed check prints its error on stderr and exits with code 1.

import { chromium } from 'playwright-core';
import { createInterface } from 'node:readline';

const config = JSON.parse(process.argv[2]);
const scenarios = await import(config.module);
const args = ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--autoplay-policy=no-user-gesture-required'];
const browser = await chromium.launch({ executablePath: config.executable, headless: true, args });
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/** Opens a page in a new browser context. The page records its errors, its requests and the violations of its policy. */
async function open({ url = config.site, ready = true, ...options } = {}) {
  const context = options.context ?? (await browser.newContext({ viewport: { width: 1100, height: 850 }, locale: 'en-US', ...options }));
  context.setDefaultTimeout(30_000);
  const page = await context.newPage();
  page.errors = [];
  page.requestedUrls = [];
  page.on('pageerror', (err) => page.errors.push(err.stack || err.message));
  page.on('request', (r) => page.requestedUrls.push(r.url()));
  await page.addInitScript(() => {
    window.violations = [];
    document.addEventListener('securitypolicyviolation', (e) => window.violations.push(`${e.violatedDirective} ${e.blockedURI}`));
  });
  await options.before?.(page);
  if (url) await page.goto(url);
  if (url && ready) await page.waitForFunction(() => window.Parley?.open);
  return page;
}

const report = (line) => process.stdout.write(line + '\n');
const nextCommand = async () => (await lines.next()).value;

let failed = false;
try {
  await scenarios[config.scenario]({ config, browser, open, report, nextCommand });
} catch (err) {
  failed = true;
  process.stderr.write(`${err.stack}\n`);
}
await browser.close();
if (!failed) report('done');
process.exit(failed ? 1 : 0);
