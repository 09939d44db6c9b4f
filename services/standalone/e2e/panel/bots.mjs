// Scenarios of the panel: the bot of an application. widget.mjs runs one exported function.

import assert from 'node:assert/strict';
import { Webhook } from 'standardwebhooks';
import { button, eventually, signIn } from '../page.mjs';
import { assertClean, dialog, openVisitorPage, serve } from './shared.mjs';

/** The card of the tab with a heading. */
const card = (page, name) => page.locator('.panel-card').filter({ has: page.getByRole('heading', { name, exact: true }) });

/**
 * A bot is drafted, corrected, published, answers a visitor, becomes a language model, and goes back to version 1. Then its log is read, a
 * question is asked again, a bound is set, and an unsaved draft is asked in the console.
 */
export async function bots(env) {
  const { config } = env;
  const received = [];
  const own = await serve((request, body, response) => {
    received.push({ headers: request.headers, body });
    response.end('{"messages":[{"type":"TEXT","data":{"text":"From the shop."}}]}');
  });
  const models = await serve((request, body, response) => {
    response.setHeader('Content-Type', 'application/json');
    if (request.method === 'GET') return response.end('{"data":[{"id":"small"}]}');
    const { model, messages } = JSON.parse(body);
    response.end(JSON.stringify({ choices: [{ message: { content: `${model}: ${messages[0].content}` }, finish_reason: 'stop' }] }));
  });

  const page = await signIn(env, { path: `/applications/${config.appId}/bot` });
  await page.getByText('The operator’s default answers.').waitFor();
  await page.getByRole('radio', { name: 'Your server', exact: true }).check();
  await page.getByLabel('URL', { exact: true }).fill('shop.example');
  await button(page, 'Save draft').click();
  await page.getByText('Must be an http or https URL.').waitFor();
  await page.getByLabel('URL', { exact: true }).fill('http://127.0.0.1:9/nobody');
  await button(page, 'Publish').click();
  await card(page, 'Server').locator('.error').filter({ hasNotText: 'Must be an http' }).waitFor();
  await page.getByLabel('URL', { exact: true }).fill(own);
  await button(page, 'Publish').click();
  const shown = dialog(page, 'Secret of the bot');
  const secret = await shown.getByRole('region', { name: 'Secret' }).textContent();
  await button(shown, 'I have copied it').click();
  await page.getByText(/^Version 1 · your server/i).first().waitFor();
  await assertClean(page, config);

  const ada = await openVisitorPage(env, 'Ada');
  await ada.write('Where is my parcel?');
  await ada.messageWith('From the shop.').waitFor();
  const asked = received.find(({ body }) => body.includes('Where is my parcel?'));
  assert.equal(JSON.parse(JSON.stringify(new Webhook(secret).verify(asked.body, asked.headers))).message.data.text, 'Where is my parcel?');

  await page.getByRole('radio', { name: 'Language model', exact: true }).check();
  await button(page, 'Add connection').first().click();
  const connection = dialog(page, 'Add connection');
  await connection.getByLabel('Name').fill('Models');
  await connection.getByLabel('Address').fill(`${models}/v1`);
  await connection.getByLabel('API key').fill('sk-1');
  await button(connection, 'Add').click();
  await page.getByText('Connection added').waitFor();
  await page.getByLabel('Connection', { exact: true }).selectOption({ label: 'Models' });
  await page.getByLabel('Model', { exact: true }).fill('small');
  await page.getByLabel('System prompt').fill('You are Polly.');
  await button(page, 'Publish').click();
  await page.getByText('Version 2 is in force').waitFor();
  await assertClean(page, config);
  await eventually('the model answers', async () => {
    await ada.write('And now?');
    await ada.messageWith('small: You are Polly.').waitFor({ timeout: 5_000 });
  });

  await button(page, 'Publish again: version 1').click();
  await button(dialog(page, 'Publish version 1 again?'), 'Publish').click();
  await page.getByText('Version 3 is in force').waitFor();
  await assertClean(page, config);

  const calls = card(page, 'Calls');
  const parcel = calls.locator('.calls > li').filter({ hasText: 'Where is my parcel?' });
  await eventually('the log has the question', async () => {
    await button(calls, 'Refresh the calls').click();
    await parcel.getByText('From the shop.').waitFor({ timeout: 1_000 });
  });
  await parcel.getByText('Where is my parcel?').click();
  await parcel.getByText('Version 1 · Your server').waitFor();
  await button(parcel, 'Ask the draft again').click();
  await parcel.getByRole('heading', { name: 'Answer of the draft' }).waitFor();
  await parcel.getByText('What was sent').last().click();
  await parcel.getByRole('list', { name: 'What was sent' }).getByText('Where is my parcel?').waitFor();

  const usage = card(page, 'Usage today');
  await eventually('the usage counts the questions', async () => {
    await button(usage, 'Refresh the usage').click();
    await usage.getByText(/^[1-9]\d* \(no bound\)$/).first().waitFor({ timeout: 1_000 });
  });
  await usage.getByText('0 (no bound)', { exact: true }).waitFor();

  await card(page, 'Bounds').getByRole('heading').click();
  await page.getByLabel('Questions a day').first().fill('500');
  await button(page, 'Save draft').click();
  await page.getByText('Draft saved').waitFor();
  await page.reload();
  await usage.getByText('Questions', { exact: true }).waitFor();
  assert.equal(await page.getByLabel('Questions a day').first().inputValue(), '500', 'the bound is saved');

  await page.getByRole('radio', { name: 'Demo bot', exact: true }).check();
  const draft = card(page, 'Console');
  await draft.getByLabel('Your question').fill('hello');
  await draft.getByLabel('Your question').press('Enter');
  await draft.getByText('Hello! Nice to meet you.').waitFor();
  assert.equal(await draft.getByLabel('Your question').inputValue(), '', 'the field is ready for the next question');
  await button(draft, 'Start again').click();
  await draft.getByText('Ask something to see how the draft answers.').waitFor();
  await assertClean(page, config);
}
