// Scenarios of the panel: the streams. widget.mjs runs one exported function.

import { jetstream } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { button, eventually, signIn, write } from '../page.mjs';
import { api, assertClean, dialog, navigate, openVisitorPage } from './shared.mjs';

export async function streams(env) {
  const { config } = env;
  const page = await signIn(env, { path: '/streams' });
  await page.getByRole('heading', { name: 'INBOUND' }).waitFor();
  await page.getByRole('row').filter({ hasText: 'recorder' }).first().getByText('Up to date').waitFor();
  // Nothing of the test can be an hour old.
  const streamsPath = /\/api\/streams/;
  await page.route(streamsPath, async (route) => {
    const response = await route.fetch();
    const waiting = [{ channel: 'phone', companyId: config.companyId, since: '2026-01-01T00:00:00.000Z' }];
    await route.fulfill({ response, json: { ...(await response.json()), waiting } });
  });
  await page.getByText(/Nobody takes the messages of the company .* to the channel phone/).waitFor();
  await page.unroute(streamsPath);
  await page.getByRole('link', { name: 'Live tail' }).click();
  await page.getByText('Live', { exact: true }).waitFor();
  const ada = await openVisitorPage(env, 'Ada');
  await ada.write('trace me');
  await page.locator('.tail-row').filter({ hasText: 'trace me' }).first().waitFor();
  const message = (await api(page, 'GET', `chats/${(await api(page, 'GET', 'chats?q=Ada')).chats[0].id}/messages`)).messages.find((m) => m.data.text === 'trace me');
  await navigate(page, `/streams/trace/${message.id}`);
  await page.getByText('What became of it').waitFor();
  await page.locator('.steps').getByText(/INBOUND #\d+/).waitFor();
  await page.locator('.steps').getByText('In the history').waitFor();
  await page.getByRole('link', { name: 'Dead letters' }).click();
  await page.getByText('No dead letters').waitFor();

  // Publish an event that no consumer can decode.
  const nats = await connect({ servers: config.nats });
  await jetstream(nats).publish(`chat.in.visitor.message.${config.appId}.${message.id}`, 'not an event');
  await nats.close();
  const letters = page.locator('tbody tr');
  await eventually('the event is a dead letter', async () => {
    await page.reload();
    await letters.first().waitFor({ timeout: 2000 });
  });
  const events = letters.getByRole('button');
  await events.first().click();
  await page.getByRole('dialog').getByRole('region', { name: 'Payload' }).getByText('not an event').waitFor();
  await button(page.getByRole('dialog'), 'Close').last().click();
  await button(page, 'Redrive all').click();
  const redrive = dialog(page, 'Redrive dead letters?');
  await redrive.getByText('would be redriven').first().waitFor();
  await redrive.getByText('Nothing has happened yet.').waitFor();
  await redrive.getByRole('button', { name: /^Redrive \d/ }).click();
  await page.getByText(/^\d+ redriven$/).waitFor();
  await eventually('the redriven event is a dead letter again', async () => {
    await page.reload();
    await letters.first().waitFor({ timeout: 2000 });
  });
  await page.getByLabel('Choose all').click();
  await button(page, 'Delete').click();
  await dialog(page, 'Delete dead letters?').getByRole('button', { name: /^Delete \d/ }).click();
  await page.getByText(/^\d+ deleted$/).waitFor();
  await assertClean(page, config);
}
