import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chats, companies, people, streams, webhooks } from '../src/api/api.js';

interface Call {
  path: string;
  query: URLSearchParams;
  body: Record<string, unknown>;
}

/** Answers the calls that run makes with the given bodies, in order, and returns the calls. */
async function calls(answers: object[], run: () => Promise<void>): Promise<Call[]> {
  const made: Call[] = [];
  const real = globalThis.fetch;
  globalThis.fetch = async (url, init) => {
    const { pathname, searchParams } = new URL(String(url), 'https://panel.example');
    made.push({ path: pathname, query: searchParams, body: init?.body ? JSON.parse(String(init.body)) : {} });
    const answer = answers[made.length - 1];
    assert.ok(answer, `unexpected call of ${pathname}`);
    return new Response(JSON.stringify(answer));
  };
  try {
    await run();
  } finally {
    globalThis.fetch = real;
  }
  return made;
}

test('a list that is longer than a page is loaded completely', async () => {
  const made = await calls(
    [
      { companies: [{ id: 'a' }, { id: 'b' }], next: 'b' },
      { companies: [], next: 'c' },
      { companies: [{ id: 'd' }], next: null },
    ],
    async () => {
      assert.deepEqual(
        (await companies.list()).map((c) => c.id),
        ['a', 'b', 'd'],
      );
    },
  );
  assert.deepEqual(
    made.map((c) => c.query.get('cursor')),
    [null, 'b', 'c'],
  );
  assert.deepEqual(
    made.map((c) => c.query.get('limit')),
    ['200', '200', '200'],
  );
});

test('the other members of a list come from its answers', async () => {
  await calls(
    [
      { endpoints: [{ id: 'a' }], types: ['x'], retentionDays: 7, next: 'a' },
      { endpoints: [{ id: 'b' }], types: ['x'], retentionDays: 7, next: null },
    ],
    async () => {
      const all = await webhooks.list();
      assert.deepEqual([all.endpoints.map((e) => e.id), all.types, all.retentionDays], [['a', 'b'], ['x'], 7]);
    },
  );
});

test('a page has the cursor of the next one', async () => {
  const made = await calls(
    [
      { entries: [{ id: 'a' }], next: 'a' },
      { letters: [], next: null },
      { messages: [], next: 'm' },
    ],
    async () => {
      assert.equal((await people.audit('t', '')).next, 'a');
      assert.equal((await streams.deadLetters({}, '17')).next, '');
      assert.equal((await chats.messages('c', 'n')).more, true);
    },
  );
  assert.deepEqual(
    made.map((c) => c.query.get('cursor')),
    [null, '17', 'n'],
  );
});

test('a search goes on after pages without a match', async () => {
  const many = Array.from({ length: 20 }, (_, i) => ({ id: `v${i}` }));
  const made = await calls(
    [
      { visitors: [], next: 'a' },
      { visitors: many, next: 'b' },
      { deliveries: [], next: 'c' },
      { deliveries: [], next: null },
    ],
    async () => {
      const found = await people.visitors('ada', '');
      assert.deepEqual([found.items.length, found.next], [20, 'b']);
      const none = await webhooks.deliveries('e', { status: 'failed' }, 'x');
      assert.deepEqual(none, { items: [], next: '' });
    },
  );
  assert.deepEqual(
    made.map((c) => c.query.get('cursor')),
    [null, 'a', 'x', 'c'],
  );
});

test('a replay goes on until the last page', async () => {
  const made = await calls(
    [
      { deliveryIds: ['a'], next: 'a' },
      { deliveryIds: ['b'], next: null },
    ],
    async () => {
      assert.deepEqual(await webhooks.replay('e', { status: 'failed' }), ['a', 'b']);
    },
  );
  assert.deepEqual(
    made.map((c) => c.body),
    [{ status: 'failed' }, { status: 'failed', cursor: 'a' }],
  );
});

test('dead letters are redriven as many at a time as the API takes', async () => {
  const sequences = Array.from({ length: 1001 }, (_, i) => i + 1);
  const made = await calls(
    [
      { results: [{}], next: null },
      { results: [{}], next: null },
    ],
    async () => {
      assert.equal((await streams.redrive({ sequences, stream: 'INBOUND' }, false)).length, 2);
    },
  );
  assert.deepEqual(
    made.map((c) => (c.body.sequences as number[]).length),
    [1000, 1],
  );
  assert.ok(made.every((c) => c.body.stream === 'INBOUND' && c.body.dryRun === false));
});
