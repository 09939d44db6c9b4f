// Uses the TypeScript client as a company and as a visitor: a lost response does not duplicate a message, and webhooks are verified.
//
//   node clients.mjs '{"client":"http://...","widget":"http://...","accessToken":"...","appId":"..."}'
//
// It prints the URL of its webhook receiver, reads the secret of that endpoint from stdin, and prints "done" at the end.

import { createClient, createWidget, ParleyError, verifyWebhook } from '@parley/client';
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';

const config = JSON.parse(process.argv[2]);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

const deliveries = [];
let notify = () => {};
const receiver = createServer(async (request, response) => {
  let body = '';
  for await (const part of request.setEncoding('utf8')) body += part;
  response.writeHead(204).end();
  deliveries.push({ body, headers: request.headers });
  notify();
});
await new Promise((listening) => receiver.listen(0, '127.0.0.1', listening));
console.log(`listening http://127.0.0.1:${receiver.address().port}/`);
const secret = (await lines.next()).value;

const email = `${randomUUID()}@example.com`;
const { accessToken } = await createWidget({ baseUrl: config.widget }).register({ body: { appId: config.appId, firstName: 'Ada', email } });
const visitor = createWidget({ baseUrl: config.widget, accessToken });
await visitor.sendMessage({ body: { type: 'TEXT', data: { text: 'Where is my order?' } } });

await assert.rejects(createClient({ baseUrl: config.client, accessToken: 'pat_unknown' }).listChats(), (err) => err instanceof ParleyError && err.code === 'UNAUTHORIZED' && err.requestId !== '');
const company = createClient({ baseUrl: config.client, accessToken: config.accessToken });
const [chat] = await company.listChats({ query: { email } });
const { messageId } = await company.sendMessage({ body: { type: 'TEXT', data: { text: 'It is on its way.' }, chatId: chat.chatId } });

const end = Date.now() + 30_000;
while ((await company.getMessage({ path: { id: messageId } })).status === 'accepted') assert.ok(Date.now() < end, 'the message is not stored within 30 seconds');
let copies = 0;
for await (const message of company.all('listMessages', { path: { id: chat.chatId }, query: { limit: 2 } })) {
  if (message.type === 'TEXT' && message.data.text === 'It is on its way.') copies++;
}
assert.equal(copies, 1, 'the message is in the history once');

for (;;) {
  while (!deliveries.length) await new Promise((resolve) => (notify = resolve));
  const { body, headers } = deliveries.shift();
  const event = await verifyWebhook(secret, body, headers);
  await assert.rejects(verifyWebhook(secret, `${body} `, headers));
  if (event.data.chatId !== chat.chatId) continue; // the visitor of another test
  assert.equal(event.type, 'message.received');
  assert.equal(event.data.message.data.text, 'Where is my order?');
  break;
}
receiver.close();
receiver.closeAllConnections();
console.log('done');
process.exit(0);
