// Uses the demo page as a visitor does, in Debian's Chromium, and says on stdout what it saw.
//
//   node page.mjs '{"url":"http://.../demo","executable":"chromium","shots":"a folder"}'
//
// It prints the shell lines that the page shows for the company and waits for the company's message to appear: the test runs them.

import { chromium } from 'playwright-core';

const { url, executable, shots } = JSON.parse(process.argv[2]);
const args = ['--no-sandbox', '--disable-gpu', '--disable-background-networking'];
const browser = await chromium.launch({ executablePath: executable, headless: true, args });
const faults = [];

function say(kind, more = {}) {
  process.stdout.write(JSON.stringify({ kind, ...more }) + '\n');
}

async function open(viewport) {
  const context = await browser.newContext({ viewport });
  context.setDefaultTimeout(15_000);
  const page = await context.newPage();
  page.on('console', (m) => {
    const refused = m.location().url.endsWith('/register'); // the form is sent once without the first name, to see what the page says
    if (['error', 'warning'].includes(m.type()) && !refused) faults.push(`${m.type()}: ${m.text()} (${m.location().url})`);
  });
  page.on('pageerror', (err) => faults.push(`page: ${err.message}`));
  page.on('requestfailed', (r) => {
    if (!r.url().includes('/socket.io/')) faults.push(`request: ${r.url()} ${r.failure()?.errorText}`);
  });
  await page.goto(url);
  return { context, page };
}

const messages = (page, type) => page.locator(`#messages > li[data-type="${type}"]`);
const shot = (page, name) => page.screenshot({ path: `${shots}/${name}.png`, fullPage: true });

// drawn waits until an image of a message has really been drawn.
async function drawn(page, image) {
  await image.scrollIntoViewIfNeeded();
  await page.waitForFunction((img) => img.complete && img.naturalWidth > 0, await image.elementHandle());
}

async function visit() {
  const { context, page } = await open({ width: 900, height: 950 });
  await page.locator('#register').waitFor();
  await shot(page, '1-form');

  await page.getByLabel('E-mail').fill('ada@example.com');
  await page.getByRole('button', { name: 'Start the chat' }).click();
  await page.locator('#register .wrong').waitFor(); // the first name is required: the server says so beside the field
  const complaint = await page.locator('#problem').textContent();
  await page.getByLabel('First name').fill('Ada');
  await page.getByRole('button', { name: 'Start the chat' }).click();
  await page.locator('#state[data-state="on"]').waitFor();
  await messages(page, 'TEXT').first().waitFor();
  say('registered', { greetings: await messages(page, 'TEXT').count(), complaint });

  const evil = '<img src=x onerror="document.title=\'owned\'">';
  await page.getByLabel('Your message').fill(evil);
  await page.getByRole('button', { name: 'Send', exact: true }).click();
  await page.locator('#messages > li.mine').filter({ hasText: evil }).waitFor();
  await page.locator('#company').waitFor();
  await page.getByLabel('Your message').fill('menu');
  await page.getByRole('button', { name: 'Send', exact: true }).click();

  await page.getByRole('button', { name: 'Show me a picture' }).last().click();
  await drawn(page, messages(page, 'IMAGE').last().locator('img'));
  await page.getByRole('button', { name: 'Show me cards' }).last().click();
  await drawn(page, messages(page, 'CAROUSEL').last().locator('img').first());
  await shot(page, '2-chat');

  const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');
  await page.getByLabel('Your message').fill('my dot');
  await page.locator('#file').setInputFiles({ name: 'dot.png', mimeType: 'image/png', buffer: png });
  const mine = page.locator('#messages > li.mine[data-type="IMAGE"]');
  await drawn(page, mine.locator('img'));
  await mine.filter({ hasText: 'my dot' }).waitFor();
  await messages(page, 'TEXT').filter({ hasText: 'I got dot.png' }).waitFor(); // the bot has seen it
  await shot(page, '2-file');
  say('shapes', { image: await messages(page, 'IMAGE').count(), carousel: await messages(page, 'CAROUSEL').count() });

  say('company', { lines: await page.locator('#curl').textContent() });
  await messages(page, 'TEXT').filter({ hasText: 'Hello from the company' }).waitFor();

  const before = await ids(page);
  await page.reload();
  await page.waitForFunction((n) => document.querySelectorAll('#messages > li').length >= n, before.length);
  const after = await ids(page);
  say('reloaded', { same: JSON.stringify(before) === JSON.stringify(after), before, after, title: await page.title() });
  await context.close();
}

const ids = (page) => page.locator('#messages > li').evaluateAll((list) => list.map((e) => e.dataset.id));

async function visitOnPhone() {
  const { context, page } = await open({ width: 375, height: 667 });
  await page.locator('#register').waitFor();
  await page.getByLabel('First name').fill('Bob');
  await page.getByLabel('E-mail').fill('bob@example.com');
  await page.getByRole('button', { name: 'Start the chat' }).click();
  await page.locator('#state[data-state="on"]').waitFor();
  await page.getByLabel('Your message').fill('cards');
  await page.keyboard.press('Enter');
  await drawn(page, messages(page, 'CAROUSEL').last().locator('img').first());
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
  await shot(page, '3-phone');
  say('phone', { overflow });
  await context.close();
}

try {
  await visit();
  await visitOnPhone();
} catch (err) {
  faults.push(`script: ${err.message}`);
}
say('end', { faults });
await browser.close();
