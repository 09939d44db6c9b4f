// Sends messages of a company with the TypeScript client: it reads one JSON command per line from stdin, and prints one JSON answer per line
// on stdout. It exits when stdin closes.
//
//   node company.mjs '{"client":"http://...","accessToken":"...","timeout":10000}'
//   {"key":"...","chatId":"...","text":"..."}    the key is the Idempotency-Key
//   {"status":200,"body":"{\"messageId\":...}"}  the answer; status 0: there was no response

import { createClient, ParleyError } from '@parley/client';
import { createInterface } from 'node:readline';

const { client: baseUrl, accessToken, timeout } = JSON.parse(process.argv[2]);
const company = createClient({ baseUrl, accessToken, timeout });

async function send({ key, chatId, text }) {
  try {
    const sent = await company.sendMessage({ idempotencyKey: key, body: { type: 'TEXT', chatId, data: { text } } });
    return { status: 200, body: JSON.stringify(sent) };
  } catch (err) {
    return { status: err instanceof ParleyError ? err.status : 0, body: err.message };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await send(JSON.parse(line))));
}
process.exit(0);
