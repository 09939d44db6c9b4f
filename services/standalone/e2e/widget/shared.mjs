// Functions that the scenarios of the chat widget share.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { png, unique } from '../page.mjs';

/** A picture with visible content. */
export const picture = readFileSync(fileURLToPath(new URL('../../../processor/internal/bot/assets/parley.png', import.meta.url)));

export const launcher = (page) => page.getByRole('button', { name: 'Open chat' });

export const composer = (page) => page.getByLabel('Your message');

export const rows = (page) => page.locator('[role=log] article[data-id]');

export const ids = (page) => rows(page).evaluateAll((all) => all.map((e) => e.dataset.id));

export const texts = (page, selector = '.row .words') => page.locator(`[role=log] ${selector}`).allTextContents();

export const messageWith = (page, text) => page.locator('[role=log]').getByText(text).first();

export async function register(page, { email = `ada${unique()}@example.com` } = {}) {
  await launcher(page).click();
  await page.getByLabel('First name').fill('Ada');
  await page.getByLabel('Email').fill(email);
  await page.getByRole('button', { name: 'Start the chat' }).click();
  await rows(page).first().waitFor();
  return email;
}

/** Sends a message from the company, with the curl command that the page shows, and with other data if it is given. */
export async function sendFromCompany(page, data) {
  const shown = page.locator('#curl');
  await shown.waitFor(); // it appears with the first reply that the widget reports to the page
  let command = await shown.textContent();
  if (data) command = command.replace(/"data":\{.*?\}/, () => `"data":${JSON.stringify(data).replaceAll("'", "'\\''")}`);
  assert.match(execFileSync('sh', ['-c', command], { encoding: 'utf8' }), /Message sent successfully/);
}

/** Starts a site. It answers every path with the HTML that was last passed to `serve`. */
export async function startSite() {
  let html = '';
  const server = createServer((_, response) => response.setHeader('Content-Type', 'text/html').end(html));
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return { url: `http://127.0.0.1:${server.address().port}/`, serve: (text) => { html = text; }, close: () => server.close() };
}

export const tagOf = ({ base, appId }, more = '') => `<script async src="${base}/widget.js" data-app-id="${appId}" ${more}></script>`;

export const cors = { 'Access-Control-Allow-Origin': '*', 'Access-Control-Allow-Headers': '*', 'Access-Control-Expose-Headers': 'Link', 'Cross-Origin-Resource-Policy': 'cross-origin' };

/** Answers history requests with these messages, in pages. */
export async function withHistory(page, all) {
  await page.route(/\/message\?/, (route) => {
    const query = new URL(route.request().url()).searchParams;
    const end = query.has('before') ? all.findIndex((m) => m.id === query.get('before')) : all.length;
    const from = Math.max(0, end - Number(query.get('limit')));
    return route.fulfill({ json: all.slice(from, end), headers: { ...cors, ...(from && { Link: `<?before=${all[from].id}>; rel="next"` }) } });
  });
  await page.route(/\/chats\?/, (route) => route.fulfill({ json: [], headers: cors })); // no earlier chat
  await page.route(/\/read$/, (route) => route.fulfill({ status: 204, headers: cors }));
}
