import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createClient, createWidget, ParleyError, type Client, type Widget } from '../src/index.js';
import { pauseBefore } from '../src/retry.js';

interface SentRequest {
  method: string;
  url: string;
  headers: Headers;
  body: unknown;
}

/** Creates clients of a fake server that returns these responses in order and records the requests. */
function server(...answers: (() => Response)[]) {
  const requests: SentRequest[] = [];
  const fetch = async (url: unknown, init: RequestInit = {}) => {
    requests.push({ method: init.method!, url: String(url), headers: new Headers(init.headers), body: init.body });
    const answer = answers[requests.length - 1];
    if (!answer) throw new Error('unexpected request');
    return answer();
  };
  const options = {
    baseUrl: 'https://api.example/v1/',
    accessToken: 'secret',
    fetch: fetch as typeof globalThis.fetch,
    retry: { pause: 1 },
  };
  return { requests, client: createClient(options) as Client, widget: createWidget(options) as Widget };
}

const json =
  (body: unknown, status = 200, headers: Record<string, string> = {}) =>
  () =>
    new Response(JSON.stringify(body), { status, headers });
const problem = (status: number, code: string, headers: Record<string, string> = {}) =>
  json(
    { statusCode: status, code, message: 'no', details: [{ field: 'f', message: 'is required' }], requestId: 'r-1' },
    status,
    headers,
  );
const broken = () => {
  throw new TypeError('fetch failed');
};
const chatId = '0d9f5c7e-6c1d-4b7a-8f1e-2a3b4c5d6e7f';
const message = { body: { type: 'TEXT', data: { text: 'Hello' }, chatId } } as const;

test('a request has the token, the path, the query and the body', async () => {
  const { requests, client, widget } = server(
    json({ chatId }),
    json({ message: 'sent', messageId: 'm' }),
    () => new Response(null, { status: 204 }),
  );
  await client.getChat({ path: { id: 'a/b' } });
  await client.sendMessage({ ...message, query: { dryRun: false } });
  assert.equal(await widget.readMessage({ path: { id: 'm' } }), undefined);
  assert.deepEqual(
    requests.map((a) => `${a.method} ${a.url}`),
    [
      'GET https://api.example/v1/chats/a%2Fb',
      'POST https://api.example/v1/message/send?dryRun=false',
      'POST https://api.example/v1/message/m/read',
    ],
  );
  assert.equal(requests[1]!.headers.get('x-access-token'), 'secret');
  assert.deepEqual(JSON.parse(requests[1]!.body as string), message.body);
  assert.equal(requests[2]!.headers.get('authorization'), 'Bearer secret');
});

test('an idempotent request is retried with the same key', async () => {
  const { requests, client } = server(
    broken,
    problem(500, 'INTERNAL_ERROR'),
    problem(409, 'IDEMPOTENCY_KEY_IN_USE', { 'Retry-After': '0' }),
    json({ message: 'sent', messageId: 'm' }),
  );
  const sent = await client.sendMessage(message);
  assert.equal('messageId' in sent && sent.messageId, 'm');
  const keys = requests.map((a) => a.headers.get('idempotency-key'));
  assert.equal(keys.length, 4);
  assert.equal(new Set(keys).size, 1);
  assert.match(keys[0]!, /^[0-9a-f-]{36}$/);
});

test('the key of the caller is sent', async () => {
  const { requests, client } = server(json({}), json({}));
  await client.sendMessage({ ...message, idempotencyKey: 'order-1' });
  await client.sendMessage({ ...message, headers: { 'Idempotency-Key': 'order-2' } });
  assert.deepEqual(
    requests.map((a) => a.headers.get('idempotency-key')),
    ['order-1', 'order-2'],
  );
});

test('a request that may have taken effect is not retried without a key', async () => {
  const registration = { body: { appId: chatId, email: 'ada@example.com' } };
  for (const answer of [broken, problem(500, 'INTERNAL_ERROR')]) {
    const { requests, widget } = server(answer);
    await assert.rejects(widget.register(registration));
    assert.equal(requests.length, 1);
    assert.equal(requests[0]!.headers.get('idempotency-key'), null);
  }
  const { requests, widget } = server(
    problem(503, 'UNAVAILABLE', { 'Retry-After': '0' }),
    problem(429, 'RATE_LIMITED', { 'Retry-After': '0' }),
    json({ accessToken: 't' }),
  );
  assert.equal((await widget.register(registration)).accessToken, 't');
  assert.equal(requests.length, 3);
});

test('a rejected request fails at once with the code of the error', async () => {
  const { requests, client } = server(problem(400, 'CHAT_CLOSED'));
  await assert.rejects(client.sendMessage(message), (err) => {
    assert.ok(err instanceof ParleyError);
    assert.deepEqual(
      [err.status, err.code, err.message, err.requestId, err.details],
      [400, 'CHAT_CLOSED', 'no', 'r-1', [{ field: 'f', message: 'is required' }]],
    );
    return true;
  });
  assert.equal(requests.length, 1);
});

test('attempts are limited, and an error response of a proxy is a ParleyError', async () => {
  const bad = () => new Response('<html>', { status: 502 });
  const { requests, client } = server(bad, bad, bad, bad, bad);
  await assert.rejects(
    client.listChats(),
    (err) => err instanceof ParleyError && err.status === 502 && err.code === '',
  );
  assert.equal(requests.length, 4);
});

test('the pause grows and honours Retry-After, as seconds or as a date', () => {
  const now = Date.parse('2026-11-22T12:00:00Z');
  for (let i = 0; i < 50; i++) {
    const pause = pauseBefore(3, null, {})!;
    assert.ok(pause >= 500 && pause <= 1000, String(pause));
  }
  assert.equal(pauseBefore(1, '7', {}, now), 7000);
  assert.equal(pauseBefore(1, 'Sun, 22 Nov 2026 12:00:09 GMT', {}, now), 9000);
  assert.equal(pauseBefore(1, '31', {}, now), undefined);
});

test('an aborted call ends, even between attempts', async () => {
  const { requests, client } = server(problem(503, 'UNAVAILABLE', { 'Retry-After': '20' }));
  const stop = new AbortController();
  const call = client.getChat({ path: { id: chatId }, signal: stop.signal });
  setTimeout(() => stop.abort(new Error('enough')), 10);
  await assert.rejects(call, /enough/);
  assert.equal(requests.length, 1);
});

test('a list is read to its last page', async () => {
  const { requests, client } = server(
    json([{ chatId: '1' }, { chatId: '2' }], 200, { Link: '<?limit=2&after=x%3D>; rel="next"' }),
    json([], 200, { Link: '<?limit=2&after=y>; rel="next"' }),
    json([{ chatId: '3' }]),
  );
  const seen: string[] = [];
  for await (const chat of client.all('listChats', { query: { limit: 2 } })) seen.push(chat.chatId);
  assert.deepEqual(seen, ['1', '2', '3']);
  assert.deepEqual(
    requests.map((a) => new URL(a.url).search),
    ['?limit=2', '?limit=2&after=x%3D', '?limit=2&after=y'],
  );
});

test('a file is sent as a form, and returned unparsed', async () => {
  const { requests, widget } = server(
    json({ id: 'm' }, 201),
    () => new Response('{"not":"parsed"}', { headers: { 'Content-Type': 'application/json' } }),
  );
  const form = new FormData();
  form.append('file', new Blob(['paid']), 'receipt.txt');
  await widget.sendMessage({ body: form });
  assert.equal(requests[0]!.body, form);
  assert.equal(requests[0]!.headers.get('content-type'), null);
  const file: Response = await widget.getFile({ path: { id: 'f', name: 'receipt.txt' } });
  assert.equal(await file.text(), '{"not":"parsed"}');
});
