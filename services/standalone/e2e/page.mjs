// Functions that the browser scenarios share.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

export const axePath = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
const axeSource = readFileSync(axePath, 'utf8');

/** The rule sets of axe to check. */
export const axeRules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

/** A PNG of one pixel. */
export const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==', 'base64');

export const unique = () => `${Date.now()}${Math.floor(Math.random() * 1e6)}`;

export const abortRoute = (route) => route.abort();

/** Answers with a script that differs from the released one, so that its integrity check must fail. */
export async function forgeScript(route) {
  const response = await route.fetch();
  await route.fulfill({ response, body: `${await response.text()};window.forged=true` });
}

/** Repeats a check until it succeeds, for at most 30 seconds. The description names the expected state. */
export async function eventually(description, check) {
  const end = Date.now() + 30_000;
  for (;;) {
    try {
      return await check();
    } catch (err) {
      if (Date.now() > end) throw new Error(`${description}: ${err.message}`, { cause: err });
      await new Promise((done) => setTimeout(done, 50));
    }
  }
}

/** How the items of the lists in an element are marked. */
export const listMarks = (at) => at.locator('li').evaluateAll((all) => all.map((li) => getComputedStyle(li).listStyleType));

export const button = (at, name) => at.getByRole('button', { name, exact: true });

/** The row of a chat in the panel's inbox. */
export const chatRow = (page, name) => page.locator('a.chat-row').filter({ hasText: name });

/** Opens the widget on the site and registers a visitor. */
export async function openVisitor({ config, open }, name, { email = `${name.toLowerCase()}${unique()}@example.com`, ...options } = {}) {
  const page = await open({ url: config.site, ...options });
  await button(page, 'Open chat').click();
  await page.getByLabel('First name').fill(name);
  await page.getByLabel('Email').fill(email);
  await button(page, 'Start the chat').click();
  await page.locator('[role=log] article[data-id]').first().waitFor();
  return page;
}

/** Writes a message as the visitor. */
export async function write(page, text) {
  await page.getByLabel('Your message').fill(text);
  await page.getByLabel('Your message').press('Enter');
}

/** Opens the panel and signs in, by default as the first user. */
export async function signIn({ config, open }, { email = config.email, password = config.password, path = '', ...options } = {}) {
  const page = await open({ url: config.panel + '/' + (path && '#' + path), ready: false, ...options });
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password', { exact: true }).fill(password);
  await button(page, 'Sign in').click();
  await page.getByRole('navigation', { name: 'Sections' }).waitFor();
  return page;
}

/** Loads axe into a page, after all animations have finished. It uses evaluate, because the page's policy forbids a script element. */
export async function loadAxe(page) {
  await page.evaluate(() => Promise.all(document.getAnimations().map((a) => a.finished.catch(() => {}))));
  if (!(await page.evaluate(() => !!window.axe))) await page.evaluate(axeSource);
}

/** Fails if a page has thrown an error or violated its Content-Security-Policy. */
export async function assertNoErrors(...pages) {
  for (const page of pages) {
    assert.deepEqual(page.errors, [], 'the page throws no errors');
    assert.deepEqual(await page.evaluate(() => window.violations), [], 'the page does not violate its Content-Security-Policy');
  }
}

/** Holds POST requests to the URLs that match the pattern until the returned function is called. */
export async function holdPosts(page, pattern) {
  let release;
  const released = new Promise((resolve) => (release = resolve));
  await page.route(pattern, async (route) => {
    if (route.request().method() === 'POST') await released;
    await route.fallback();
  });
  return release;
}
