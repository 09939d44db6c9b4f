// Scenarios of the panel: webhook endpoints. widget.mjs runs one exported function.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { Webhook } from 'standardwebhooks';
import { button, eventually, signIn } from '../page.mjs';
import { api, assertClean, dialog, invite, registerVisitor, waitForHeading } from './shared.mjs';

/** A webhook endpoint is created, tested, filtered, fails, is enabled again, replayed, rotated, disabled and deleted. */
export async function webhooks(env) {
  const { config } = env;
  const received = [];
  let status = 204;
  const receiver = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (part) => (body += part)).on('end', () => {
      received.push({ headers: request.headers, body });
      response.writeHead(status).end(status === 204 ? undefined : 'No room here');
    });
  });
  await new Promise((listening) => receiver.listen(0, '127.0.0.1', listening));
  const url = `http://127.0.0.1:${receiver.address().port}/parley`;
  const awaitRequests = (n) => eventually(`the endpoint has received ${n} requests`, async () => assert.equal(received.length, n));
  const chooseAction = async (page, item) => {
    await button(page, `Actions for ${url}`).click();
    await page.getByRole('menuitem', { name: item, exact: true }).click();
  };

  const page = await signIn(env, { path: '/webhooks' });
  await page.getByText('No webhook endpoints yet').waitFor();
  await button(page, 'New endpoint').first().click();
  const form = dialog(page, 'New endpoint');
  await button(form, 'Create endpoint').click();
  await form.getByText('Fill in this field.').waitFor();
  await form.getByLabel('URL').fill('ftp://shop.example');
  await form.getByLabel('Headers').fill('no header');
  await button(form, 'Create endpoint').click();
  await form.getByText('Write each line as "Name: value".').waitFor();
  await form.getByLabel('Headers').fill('X-Api-Key: let me in');
  await button(form, 'Create endpoint').click();
  await form.getByText('Must be an http or https URL.').waitFor();
  await form.getByLabel('URL').fill(url);
  await form.getByLabel('Description').fill('Order system');
  await button(form, 'Only some').click();
  await form.getByLabel('message.received').check();
  await button(form, 'Create endpoint').click();
  const ready = dialog(page, 'The endpoint is ready');
  const secret = await ready.getByRole('region', { name: 'Secret' }).textContent();
  await page.keyboard.press('Escape');
  await ready.waitFor(); // Escape does not close the dialog with the secret
  await button(ready, 'I have copied it').click();
  assert.ok(!(await page.content()).includes(secret), 'the secret is no longer in the page');
  const entry = page.getByRole('row').filter({ hasText: url });
  await entry.getByText('message.received').waitFor();
  await entry.getByText('Enabled').waitFor();

  await chooseAction(page, 'Send a test');
  await waitForHeading(page, 'Deliveries');
  await awaitRequests(1);
  assert.equal(new Webhook(secret).verify(received[0].body, received[0].headers).type, 'webhook.test');
  assert.equal(received[0].headers['x-api-key'], 'let me in');
  const delivery = page.getByRole('row').filter({ hasText: 'webhook.test' });
  await delivery.getByText('Delivered').waitFor();
  await delivery.getByText('204 ·').waitFor();
  await registerVisitor(config, 'Ada', 'Where is my order?');
  await awaitRequests(2);
  assert.equal(JSON.parse(received[1].body).data.message.data.text, 'Where is my order?');

  status = 410;
  await button(page, 'Send a test').click();
  await awaitRequests(3);
  const failed = page.getByRole('row').filter({ hasText: 'answered 410' });
  await button(failed, 'webhook.test').click();
  const detail = dialog(page, 'webhook.test');
  await detail.getByText('No room here').waitFor();
  await detail.getByRole('region', { name: 'Body' }).getByText('"webhook.test"').waitFor();
  await button(detail, 'Close').last().click();

  status = 204;
  await page.getByRole('link', { name: 'Webhooks' }).first().click();
  await entry.getByText('answered 410').waitFor();
  await chooseAction(page, 'Enable');
  await entry.getByText('Enabled').waitFor();
  await chooseAction(page, 'Deliveries');
  await page.getByLabel('Status').selectOption('failed');
  await button(page, 'Replay failed ones').click();
  await dialog(page, 'Replay failed ones').getByText('1 delivery will be sent again').waitFor();
  await button(dialog(page, 'Replay failed ones'), 'Replay').click();
  await awaitRequests(4);
  assert.equal(received[3].headers['webhook-id'], received[2].headers['webhook-id']);
  await page.getByLabel('Status').selectOption('');
  await eventually('all deliveries are delivered', async () => assert.equal(await page.getByRole('row').getByText('Delivered', { exact: true }).count(), 3));

  await page.getByRole('link', { name: 'Webhooks' }).first().click();
  await chooseAction(page, 'Rotate secret');
  await button(dialog(page, 'Rotate the secret'), 'Rotate secret').click();
  const second = await dialog(page, 'The endpoint is ready').getByRole('region', { name: 'Secret' }).textContent();
  await button(dialog(page, 'The endpoint is ready'), 'I have copied it').click();
  await chooseAction(page, 'Send a test');
  await awaitRequests(5);
  for (const key of [secret, second]) new Webhook(key).verify(received[4].body, received[4].headers);

  await page.getByRole('link', { name: 'Webhooks' }).first().click();
  await chooseAction(page, 'Edit');
  const edit = dialog(page, 'Edit endpoint');
  await edit.getByText('Set: X-Api-Key.').waitFor();
  await edit.getByLabel('Description').fill('Order system, new');
  await button(edit, 'Save').click();
  await entry.getByText('Order system, new').waitFor();
  await chooseAction(page, 'Disable');
  await button(dialog(page, 'Disable this endpoint?'), 'Disable').click();
  await entry.getByText('disabled by a user').waitFor();
  await chooseAction(page, 'Delete');
  await button(dialog(page, 'Delete this endpoint?'), 'Delete').click();
  await page.getByText('No webhook endpoints yet').waitFor();

  const { page: agent } = await invite(env, page, 'Bob', 'agent');
  assert.equal(await agent.getByRole('link', { name: 'Webhooks' }).count(), 0, 'an agent does not see the webhooks');
  receiver.close();
  await assertClean(page, config);
}
