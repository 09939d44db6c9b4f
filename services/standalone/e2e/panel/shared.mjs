// Functions that the scenarios of the panel share.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { assertNoErrors, axeRules, button, loadAxe, openVisitor, unique, write } from '../page.mjs';

export const dialog = (page, name) => page.getByRole('dialog', { name });

export const navigate = (page, path) => page.evaluate((to) => (location.hash = to), '#' + path);

export const waitForHeading = (page, name) => page.getByRole('heading', { level: 1, name }).waitFor();

export const reply = (page) => page.getByLabel('Your reply');

export const log = (page) => page.getByRole('log', { name: 'Messages' });

export const messageWith = (page, text) => log(page).getByText(text).first();

/** Checks that a page of the panel has no errors, no inline styles and no requests to other hosts. */
export async function assertClean(page, config) {
  await assertNoErrors(page);
  assert.equal(await page.locator('[style]').count(), 0, 'no element has an inline style');
  const own = [config.panel, config.base].map((u) => new URL(u).origin);
  assert.deepEqual(page.requestedUrls.filter((u) => /^https?:/.test(u) && !own.includes(new URL(u).origin)), [], 'the page requests nothing from other hosts');
}

/** Checks with axe what a page shows. */
export async function assertAccessible(page, name) {
  await loadAxe(page);
  const { violations } = await page.evaluate((runOnly) => window.axe.run(document, { iframes: false, runOnly }), axeRules);
  assert.deepEqual(violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html.slice(0, 120)).join(' | ')}`), [], `axe has no findings on ${name}`);
}

/** Starts a server and returns its address. */
export async function serve(handle) {
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (part) => (body += part)).on('end', () => handle(request, body, response));
  });
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  return `http://127.0.0.1:${server.address().port}`;
}

export const api = (page, method, path, body) =>
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
export async function openVisitorPage(env, name) {
  const page = await openVisitor(env, name);
  page.write = async (text) => {
    await write(page, text);
    await page.locator('.mine .words').filter({ hasText: text }).last().waitFor();
  };
  page.messageWith = (text) => page.locator('[role=log]').getByText(text).first();
  return page;
}

/** Registers a visitor through the API, without a browser, and sends a message if a text is given. */
export async function registerVisitor(config, firstName, text, more = {}) {
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
export async function invite(env, page, name, role) {
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
