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

const status = (page) => page.locator('.header .sub');

/** An agent takes a chat from the bot, and closes it. The visitor who writes again sees the conversation of before, and who answers. */
export async function earlier(env) {
  const agent = await signIn(env, { path: '/inbox' });
  const page = await openVisitor(env, 'Ada');
  await write(page, 'thanks');
  await page.locator('[role=log]').getByText('You are welcome.').waitFor();
  await eventually('the bot answers', async () => assert.equal((await status(page).textContent()).trim(), 'Polly Online'));
  const edges = await page.locator('[role=log] .theirs.first.last').last().evaluate((row) => ['.author', '.words', 'time'].map((part) => {
    const range = document.createRange();
    range.selectNodeContents(row.querySelector(part));
    return Math.round(range.getBoundingClientRect().left);
  }));
  assert.equal(new Set(edges).size, 1, `name, text and time begin at one edge: ${edges}`);
  await chatRow(agent, 'Ada').click();
  const [typing] = await Promise.all([
    page.locator('.row.typing .bubble').boundingBox(), // from before: it goes again after some seconds
    agent.getByLabel('Your reply').pressSequentially('Let me add to that.', { delay: 250 }), // for longer than one signal lasts
  ]);
  const oneLine = await page.locator('.mine .bubble').first().boundingBox();
  assert.ok(typing.height <= oneLine.height, `the bubble of someone who types is ${typing.height} high, a message ${oneLine.height}`);
  await agent.getByLabel('Your reply').press('Enter');
  await page.locator('[role=log]').getByText('Let me add to that.').waitFor();
  await button(page, 'Talk to a person').waitFor({ state: 'detached' }); // one is there
  await eventually('an agent answers', async () => assert.equal((await status(page).textContent()).trim(), 'Our team is online'));
  await page.locator('.mine .mark').getByText('Read').waitFor(); // by the agent
  await checkScreen(env, page, 'widget-agent', true);
  await button(agent, 'Close').first().click();
  await notice(page, 'This chat has ended').waitFor();

  await page.reload();
  await page.waitForFunction(() => window.Parley?.open);
  await page.evaluate(() => { window.unread = []; Parley.on('unread', (n) => window.unread.push(n)); });
  await button(page, 'Open chat').click();
  await page.locator('[role=log]').getByText('Let me add to that.').waitFor(); // without an open chat
  await write(page, 'hello');
  await page.locator('[role=log]').getByText('Nice to meet you').waitFor();
  await page.locator('.day.opens').waitFor();
  assert.deepEqual(await page.evaluate(() => window.unread.filter(Boolean)), [], 'the earlier conversation is not unread');

  await page.reload();
  await page.waitForFunction(() => window.Parley?.open);
  await button(page, 'Open chat').click();
  await page.locator('[role=log]').getByText('Let me add to that.').waitFor(); // the open chat does not fill the window
  const order = await page.locator('[role=log]').evaluate((log) => [...log.querySelectorAll('.day, .row .words')].map((e) => e.textContent));
  const [divider, hello] = [order.lastIndexOf('Today'), order.indexOf('hello')];
  assert.equal(divider + 1, hello, `a divider with its date begins the new conversation: ${order.join(' | ')}`);
  await checkScreen(env, page, 'widget-earlier', true);
  await page.locator('[role=log]').evaluate((log) => (log.scrollTop = 0));
  await page.locator('[role=log]').getByText('This is the beginning of the conversation.').waitFor();
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
  await notice(page, new RegExp(`The team is away\\. It is back: ${inTwoDays} at \\d+:30`)).waitFor(); // in the visitor's time zone
  await eventually('the header agrees', async () => assert.equal((await status(page).textContent()).trim(), 'The team is away at the moment.'));
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
  assert.equal(await page.getByLabel('Your message').inputValue(), 'Is anybody there?', 'the form has the text of the composer');
  await page.getByLabel('Your message').fill('');
  await button(page, 'Send').click();
  await page.getByText('Please fill in this field.').first().waitFor();
  await page.getByLabel('Your message').fill('My parcel is damaged.');
  await page.getByLabel('Email').fill('grace@navy');
  await button(page, 'Send').click();
  await page.getByText('Please enter a valid email address.').waitFor();
  await page.getByLabel('Email').fill('grace@navy.example');
  await button(page, 'Send').click();
  await notice(page, 'Thank you. The team reads it and answers here, in this chat.').waitFor();
  await page.locator('[role=log] .mine').getByText('My parcel is damaged.').waitFor();
  await page.locator('.composer').waitFor(); // the visitor can write more
  await checkScreen(env, page, 'widget-left', true);

  await agent.goto(`${env.config.panel}/#/inbox?view=waiting`);
  await chatRow(agent, 'Grace').getByText('Left a message').waitFor();
  await chatRow(agent, 'Grace').click();
  await agent.getByText('Answer to grace@navy.example').waitFor();
  await checkScreen(env, agent, 'panel-left');

  // An agent answers while another visitor fills in the form: the text moves into the composer.
  const other = await openVisitor(env, 'Alan');
  await button(other, 'Talk to a person').click();
  await other.getByRole('heading', { name: 'Leave a message' }).waitFor();
  await other.getByLabel('Your message').fill('My parcel is');
  await agent.goto(`${env.config.panel}/#/inbox?view=waiting`);
  await chatRow(agent, 'Alan').click();
  await agent.getByLabel('Your reply').fill('I am here.');
  await agent.getByLabel('Your reply').press('Enter');
  await other.locator('.composer').waitFor();
  assert.equal(await other.getByLabel('Your message').inputValue(), 'My parcel is');
  await eventually('the header names who answers after hours', async () => assert.equal((await status(other).textContent()).trim(), 'Our team is online'));
  await eventually('the composer has the focus', async () => assert.equal(await other.evaluate(() => document.activeElement.shadowRoot?.activeElement?.id), 'parley-text'));
  await assertNoErrors(agent, page, other);
}
