// Runs the example of the README with the TypeScript client: a visitor registers and sends a message, and the company finds
// the chat, answers and reads the status of the answer. The argument is the path of .parley/demo.json.

import { createClient, createWidget } from '@parley/client';
import { readFile } from 'node:fs/promises';

const demo = JSON.parse(await readFile(process.argv[2], 'utf8'));

const email = 'grace@example.com';
const { accessToken } = await createWidget({ baseUrl: demo.widgetBaseUrl }).register({
  body: { appId: demo.appId, firstName: 'Grace', email },
});
const visitor = createWidget({ baseUrl: demo.widgetBaseUrl, accessToken });
await visitor.sendMessage({ body: { type: 'TEXT', data: { text: 'Where is my order?' } } });

const company = createClient({ baseUrl: demo.clientBaseUrl, accessToken: demo.accessToken });
for await (const chat of company.all('listChats', { query: { email } })) {
  const { messageId } = await company.sendMessage({
    body: { type: 'TEXT', data: { text: 'It is on its way.' }, chatId: chat.chatId },
  });
  const { status } = await company.getMessage({ path: { id: messageId } });
  console.log(`TypeScript client: message ${messageId} into the chat of ${chat.visitor.firstName} is ${status}`);
}
