// Scenarios with a visitor and an agent: handover, business hours, the offline form and ratings. widget.mjs runs one exported function.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { abortRoute, assertNoErrors, axeRules, button, chatRow, eventually, forgeScript, loadAxe, openVisitor, signIn, write } from './page.mjs';

const notice = (page, text) => page.locator('[role=log] .row.notice').filter({ hasText: text });

/** Checks the widget, or a page of the panel, with axe, and takes a screenshot. */
async function checkScreen({ config }, page, name, widget) {
  await loadAxe(page);
  const result = await page.evaluate(([within, runOnly]) => axe.run(within ? document.querySelector('body > div:last-of-type') : document, { runOnly }), [widget, axeRules]);
  const findings = result.violations.flatMap((v) => v.nodes.map((n) => `${v.id}: ${n.target.flat().join(' ')}`));
  if (config.shots) await page.screenshot({ path: join(config.shots, `${name}.png`) });
  assert.deepEqual(findings, [], `axe has no findings on ${name}`);
}

/** The bot hands the chat over, an agent answers and closes it, the visitor rates it, and the panel shows the rating. */
export async function handover(env) {
  const agent = await signIn(env, { path: '/inbox?view=waiting' });
  const page = await openVisitor(env, 'Ada');
  await button(page, 'Talk to a person').waitFor();
  await checkScreen(env, page, 'widget-button', true);
  await write(page, 'human');
  await notice(page, 'You are being connected to the team.').waitFor();
  await button(page, 'Talk to a person').waitFor({ state: 'detached' });
  await write(page, 'Is anybody there?'); // the bot is silent
  await chatRow(agent, 'Ada').getByText('Asked for a person').waitFor();
  await checkScreen(env, agent, 'panel-queue');
  await chatRow(agent, 'Ada').click();
  await agent.getByRole('note', { name: 'Why agents have this chat' }).getByText('Handed over by the bot').waitFor();
  await agent.getByText('The visitor wrote: human').waitFor();
  await checkScreen(env, agent, 'panel-handover');
  await agent.getByLabel('Your reply').fill('Yes, I am.');
  await agent.getByLabel('Your reply').press('Enter');
  await page.locator('[role=log]').getByText('Yes, I am.').waitFor();
  await agent.getByText('With you').first().waitFor();
  assert.equal(await page.locator('[role=log] .theirs').getByText(/You wrote|You asked/).count(), 0, 'the bot does not answer after the handover');
  await button(agent, 'Close').first().click();
  await button(agent.getByRole('dialog'), 'Close chat').click();

  // The agent sees the rating at once.
  await agent.evaluate(() => (location.hash = '#/inbox?view=closed'));
  await chatRow(agent, 'Ada').click();
  await agent.evaluate(() => (window.sameDocument = true));

  await notice(page, 'This chat has ended').waitFor();
  await page.getByRole('group', { name: 'How was this chat?' }).waitFor();
  await checkScreen(env, page, 'widget-rating', true);
  await page.getByRole('radio', { name: '4 stars' }).focus();
  await page.keyboard.press('Space');
  await page.keyboard.press('ArrowRight'); // five
  await page.getByLabel('Comment').fill('Quick and friendly.');
  await checkScreen(env, page, 'widget-rating-chosen', true);
  await button(page, 'Send').first().click();
  await page.getByText('Thank you for your rating.').first().waitFor();
  await chatRow(agent, 'Ada').getByText('★ 5 of 5').waitFor();
  await agent.locator('.conv-title').getByText('★ 5 of 5').waitFor();
  await page.reload();
  await page.waitForFunction(() => window.Parley?.open);
  await button(page, 'Open chat').click();
  await button(page, 'Change').click();
  assert.equal(await page.getByLabel('Comment').inputValue(), 'Quick and friendly.');
  await page.getByRole('radio', { name: '4 stars' }).check({ force: true });
  await button(page, 'Send').first().click();
  await page.getByText('Thank you for your rating.').first().waitFor();
  await chatRow(agent, 'Ada').getByText('★ 4 of 5').waitFor();
  await agent.locator('.conv-title').getByText('★ 4 of 5').waitFor();
  assert.equal(await agent.evaluate(() => window.sameDocument), true, 'the panel shows the rating without a reload');
  await checkScreen(env, agent, 'panel-rated');
  await agent.goto(`${env.config.panel}/#/applications`);
  await agent.getByText('★ 4.0 (1)').waitFor();
  await write(page, 'hello'); // opens a new chat with the bot
  await page.locator('[role=log]').getByText('Nice to meet you').waitFor();
  await page.getByText('Thank you for your rating.').first().waitFor({ state: 'detached' });
  await assertNoErrors(agent, page);
}

/** Business hours are set in the panel. Outside of them the visitor leaves a message, and agents find it. */
export async function hours(env) {
  const agent = await signIn(env, { path: `/applications/${env.config.appId}/support` });
  await agent.getByLabel('Agents are available only at certain times').check();
  const zone = agent.getByLabel('Time zone');
  await zone.fill('Mars/Olympus');
  await button(agent, 'Save').click();
  await agent.getByText('must be the IANA name of a time zone').waitFor();
  await zone.fill('Europe/Berlin');
  // Open in two days only, so that the team is away on whatever day the test runs.
  const days = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'];
  for (const day of days) for (const remove of await agent.getByRole('button', { name: `Remove hours 1 on ${day}` }).all()) await remove.click();
  const berlin = new Intl.DateTimeFormat('en-US', { timeZone: 'Europe/Berlin', weekday: 'long' });
  const inTwoDays = berlin.format(Date.now() + 2 * 86_400_000);
  await button(agent, `Add hours on ${inTwoDays}`).click();
  await agent.getByLabel(`${inTwoDays}, from (1)`).fill('08:30');
  await checkScreen(env, agent, 'panel-hours');
  await button(agent, 'Save').click();
  await agent.getByText('Settings saved').waitFor();

  const page = await openVisitor(env, 'Grace');
  // The form is in a separate file. If the file is missing or modified, the visitor can still write in the composer.
  const extras = /\/widget\/extras-/;
  const handled = [];
  let respond = abortRoute;
  await page.route(extras, async (route) => {
    const handler = respond;
    await handler(route);
    handled.push(handler);
  });
  const redraw = () => page.evaluate(() => Parley.setTheme('auto'));
  await button(page, 'Talk to a person').click();
  await notice(page, 'The team is away. It is back:').waitFor();
  for (respond of [abortRoute, forgeScript]) {
    handled.length = 0;
    await eventually('the form is requested again', async () => {
      await redraw();
      assert.ok(handled.includes(respond));
    });
  }
  await page.getByLabel('Your message').fill('Is anybody there?');
  assert.equal(await page.locator('.composer').count(), 1, 'the composer is still shown');
  await page.unroute(extras);
  await eventually('the form is shown', async () => {
    await redraw();
    assert.ok(await page.getByRole('heading', { name: 'Leave a message' }).isVisible());
  });
  assert.equal(await page.evaluate(() => window.forged), undefined, 'the modified script has not run');
  assert.equal(await page.locator('.composer').count(), 0, 'the form replaces the composer');
  await checkScreen(env, page, 'widget-offline', true);
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
  await page.locator('.composer').waitFor(); // the visitor can write more
  await checkScreen(env, page, 'widget-left', true);

  await agent.goto(`${env.config.panel}/#/inbox?view=waiting`);
  await chatRow(agent, 'Grace').getByText('Left a message').waitFor();
  await chatRow(agent, 'Grace').click();
  await agent.getByText('Answer to grace@navy.example').waitFor();
  await checkScreen(env, agent, 'panel-left');
  await assertNoErrors(agent, page);
}
