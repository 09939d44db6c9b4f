// Visitors and agents together: handover, business hours, the offline form and ratings. Each exported function is one run of widget.mjs.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const require = createRequire(import.meta.url);
const axeSource = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const button = (at, name) => at.getByRole('button', { name, exact: true });
const row = (page, name) => page.locator('a.chat-row').filter({ hasText: name });
const notice = (page, text) => page.locator('[role=log] .row.notice').filter({ hasText: text });

async function eventually(what, check) {
  const end = Date.now() + 30_000;
  for (;;) {
    try {
      return await check();
    } catch (err) {
      if (Date.now() > end) throw new Error(`${what}: ${err.message}`, { cause: err });
      await new Promise((done) => setTimeout(done, 50));
    }
  }
}

async function visitor({ config, open }, name, options) {
  const page = await open({ url: config.site, ...options });
  await button(page, 'Open chat').click();
  await page.getByLabel('First name').fill(name);
  await page.getByLabel('Email').fill(`${name.toLowerCase()}${Date.now()}@example.com`);
  await button(page, 'Start the chat').click();
  await page.locator('[role=log] article').first().waitFor();
  return page;
}

async function write(page, text) {
  await page.getByLabel('Your message').fill(text);
  await page.getByLabel('Your message').press('Enter');
}

async function agent({ config, open }, path) {
  const page = await open({ url: `${config.panel}/#${path}`, ready: false });
  await page.getByLabel('Email').fill(config.email);
  await page.getByLabel('Password', { exact: true }).fill(config.password);
  await button(page, 'Sign in').click();
  await page.getByRole('navigation', { name: 'Sections' }).waitFor();
  return page;
}

/** What axe finds in the widget, or in a page of the panel; and a picture. */
async function look({ config }, page, name, widget) {
  if (!(await page.evaluate(() => !!window.axe))) await page.evaluate(axeSource);
  await page.evaluate(() => Promise.all(document.getAnimations().map((a) => a.finished.catch(() => {}))));
  const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
  const found = await page.evaluate(([within, runOnly]) => axe.run(within ? document.querySelector('body > div:last-of-type') : document, { runOnly }), [widget, tags]);
  const faults = found.violations.flatMap((v) => v.nodes.map((n) => `${v.id}: ${n.target.flat().join(' ')}`));
  if (config.shots) await page.screenshot({ path: join(config.shots, `${name}.png`) });
  assert.deepEqual(faults, [], `what axe finds on ${name}`);
}

async function sound(...pages) {
  for (const page of pages) {
    assert.deepEqual(page.faults, []);
    assert.deepEqual(await page.evaluate(() => window.violations), [], 'the policy is not violated');
  }
}

/** The bot hands over, an agent answers and closes, the visitor rates, and the panel shows it. */
export async function handover(run) {
  const desk = await agent(run, '/inbox?view=waiting');
  const page = await visitor(run, 'Ada');
  await button(page, 'Talk to a person').waitFor();
  await look(run, page, 'widget-button', true);
  await write(page, 'human');
  await notice(page, 'You are being connected to the team.').waitFor();
  await button(page, 'Talk to a person').waitFor({ state: 'detached' });
  await write(page, 'Is anybody there?'); // the bot is silent
  await row(desk, 'Ada').getByText('Asked for a person').waitFor();
  await look(run, desk, 'panel-queue');
  await row(desk, 'Ada').click();
  await desk.getByRole('note', { name: 'Why agents have this chat' }).getByText('Handed over by the bot').waitFor();
  await desk.getByText('The visitor wrote: human').waitFor();
  await look(run, desk, 'panel-handover');
  await desk.getByLabel('Your reply').fill('Yes, I am.');
  await desk.getByLabel('Your reply').press('Enter');
  await page.locator('[role=log]').getByText('Yes, I am.').waitFor();
  await desk.getByText('With you').first().waitFor();
  assert.equal(await page.locator('[role=log] .theirs').getByText(/You wrote|You asked/).count(), 0, 'the bot has not answered any more');
  await button(desk, 'Close').first().click();
  await button(desk.getByRole('dialog'), 'Close chat').click();

  // What the visitor says is shown to the agent at once.
  await desk.evaluate(() => (location.hash = '#/inbox?view=closed'));
  await row(desk, 'Ada').click();
  await desk.evaluate(() => (window.sameDocument = true));

  await notice(page, 'This chat has ended').waitFor();
  await page.getByRole('group', { name: 'How was this chat?' }).waitFor();
  await look(run, page, 'widget-rating', true);
  await page.getByRole('radio', { name: '4 stars' }).focus();
  await page.keyboard.press('Space');
  await page.keyboard.press('ArrowRight'); // five
  await page.getByLabel('Comment').fill('Quick and friendly.');
  await look(run, page, 'widget-rating-chosen', true);
  await button(page, 'Send').first().click();
  await page.getByText('Thank you for your rating.').first().waitFor();
  await row(desk, 'Ada').getByText('★ 5 of 5').waitFor();
  await desk.locator('.conv-title').getByText('★ 5 of 5').waitFor();
  await page.reload();
  await page.waitForFunction(() => window.Parley?.open);
  await button(page, 'Open chat').click();
  await button(page, 'Change').click();
  assert.equal(await page.getByLabel('Comment').inputValue(), 'Quick and friendly.');
  await page.getByRole('radio', { name: '4 stars' }).check({ force: true });
  await button(page, 'Send').first().click();
  await page.getByText('Thank you for your rating.').first().waitFor();
  await row(desk, 'Ada').getByText('★ 4 of 5').waitFor();
  await desk.locator('.conv-title').getByText('★ 4 of 5').waitFor();
  assert.equal(await desk.evaluate(() => window.sameDocument), true, 'without a reload');
  await look(run, desk, 'panel-rated');
  await desk.goto(`${run.config.panel}/#/applications`);
  await desk.getByText('★ 4.0 (1)').waitFor();
  await write(page, 'hello'); // another chat, and the bot's again
  await page.locator('[role=log]').getByText('Nice to meet you').waitFor();
  await page.getByText('Thank you for your rating.').first().waitFor({ state: 'detached' });
  await sound(desk, page);
}

/** Business hours are set in the panel; outside of them the visitor leaves a message, and agents find it. */
export async function hours(run) {
  const desk = await agent(run, `/applications/${run.config.appId}/support`);
  await desk.getByLabel('Agents are there at certain times only').check();
  const zone = desk.getByLabel('Time zone');
  await zone.fill('Mars/Olympus');
  await button(desk, 'Save').click();
  await desk.getByText('must be the IANA name of a time zone').waitFor();
  await zone.fill('Europe/Berlin');
  // Closed now, and open from tomorrow's first minute, whatever the day of this run is.
  const days = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'];
  for (const day of days) for (const remove of await desk.getByRole('button', { name: `Remove hours 1 on ${day}` }).all()) await remove.click();
  const berlin = new Intl.DateTimeFormat('en-US', { timeZone: 'Europe/Berlin', weekday: 'long' });
  const inTwoDays = berlin.format(Date.now() + 2 * 86_400_000);
  await button(desk, `Add hours on ${inTwoDays}`).click();
  await desk.getByLabel(`${inTwoDays}, from (1)`).fill('08:30');
  await look(run, desk, 'panel-hours');
  await button(desk, 'Save').click();
  await desk.getByText('Settings saved').waitFor();

  const page = await visitor(run, 'Grace');
  // The form is in a file of its own. Without it, or with other bytes than those of the release, the visitor can write as ever.
  const extras = /\/widget\/extras-/;
  const away = (route) => route.abort();
  const forged = async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, body: `${await answer.text()};window.forged=true` });
  };
  const answered = [];
  let respond = away;
  await page.route(extras, async (route) => {
    const how = respond;
    await how(route);
    answered.push(how);
  });
  const redraw = () => page.evaluate(() => Parley.setTheme('auto'));
  await button(page, 'Talk to a person').click();
  await notice(page, 'The team is away. It is back:').waitFor();
  for (respond of [away, forged]) {
    answered.length = 0;
    await eventually('the form is requested again', async () => {
      await redraw();
      assert.ok(answered.includes(respond));
    });
  }
  await page.getByLabel('Your message').fill('Is anybody there?');
  assert.equal(await page.locator('.composer').count(), 1, 'the composer stays');
  await page.unroute(extras);
  await eventually('the form comes', async () => {
    await redraw();
    assert.ok(await page.getByRole('heading', { name: 'Leave a message' }).isVisible());
  });
  assert.equal(await page.evaluate(() => window.forged), undefined, 'other bytes have not run');
  assert.equal(await page.locator('.composer').count(), 0, 'the form stands in the place of the composer');
  await look(run, page, 'widget-offline', true);
  await button(page, 'Send').click();
  await page.getByText('Please fill in this field.').first().waitFor();
  await page.getByLabel('Your message').fill('My parcel is damaged.');
  await page.getByLabel('Email').fill('grace@navy');
  await button(page, 'Send').click();
  await page.getByText('Please enter a valid email address.').waitFor();
  await page.getByLabel('Email').fill('grace@navy.example');
  await button(page, 'Send').click();
  await notice(page, 'Thank you. The team answers here or by email').waitFor();
  await page.locator('[role=log] .mine').getByText('My parcel is damaged.').waitFor();
  await page.locator('.composer').waitFor(); // more can be written
  await look(run, page, 'widget-left', true);

  await desk.goto(`${run.config.panel}/#/inbox?view=waiting`);
  await row(desk, 'Grace').getByText('Left a message').waitFor();
  await row(desk, 'Grace').click();
  await desk.getByText('Answer to grace@navy.example').waitFor();
  await look(run, desk, 'panel-left');
  await sound(desk, page);
}
