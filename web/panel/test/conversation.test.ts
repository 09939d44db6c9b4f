import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '@parley/shared/api.js';
import { Conversation, merged, type ConversationConfig } from '../src/inbox/conversation.js';
import type { Message } from '../src/api/types.js';

const at = (n: number) => new Date(Date.UTC(2026, 0, 1, 0, n)).toISOString();
const message = (id: string, minute: number, more: Partial<Message> = {}): Message => ({
  id,
  createdAt: at(minute),
  type: 'TEXT',
  data: { text: id },
  nameOfSender: 'x',
  isFromSupport: true,
  ...more,
});

function conversation(more: Partial<ConversationConfig>) {
  const waits: number[] = [];
  const c = new Conversation({
    chatId: 'c',
    me: 'me',
    page: () => Promise.resolve({ messages: [], more: false }),
    send: () => Promise.reject(new Error('unexpected')),
    sendFile: () => ({ promise: Promise.reject(new Error('unexpected')), abort() {} }),
    sent() {},
    wait: (ms) => {
      waits.push(ms);
      return Promise.resolve();
    },
    ...more,
  });
  return { c, waits };
}

async function until(check: () => boolean) {
  for (let i = 0; i < 100 && !check(); i++) await new Promise((done) => setImmediate(done));
  assert.ok(check());
}

test('merged messages are in history order without duplicates, and a status never regresses', () => {
  const all = merged(
    [message('a', 1), message('c', 3, { status: 'read' })],
    [message('b', 2), message('c', 3, { status: 'delivered' })],
  );
  assert.deepEqual(
    all.map((m) => m.id),
    ['a', 'b', 'c'],
  );
  assert.equal(all[2]!.status, 'read');
});

test('a transient failure is retried with the same key', async () => {
  const keys: string[] = [];
  const { c, waits } = conversation({
    send: (_, key) => {
      keys.push(key);
      if (keys.length < 3) return Promise.reject(new ApiError(keys.length === 1 ? 0 : 503, 'X', '', [], 4));
      return Promise.resolve(message('m', 1));
    },
  });
  c.send({ type: 'TEXT', data: { text: 'hello' } });
  await until(() => c.state.value.pending.length === 0);
  assert.equal(keys.length, 3);
  assert.equal(new Set(keys).size, 1);
  assert.equal(waits[0]! >= 4000, true, 'the delay respects Retry-After');
  assert.deepEqual(
    c.state.value.messages.map((m) => m.id),
    ['m'],
  );
});

test('a rejected message stays in the list, and is sent again only on retry', async () => {
  let refuse = true;
  const keys = new Set<string>();
  const { c } = conversation({
    send: (_, key) => {
      keys.add(key);
      return refuse ? Promise.reject(new ApiError(400, 'CHAT_TOO_OLD', 'old')) : Promise.resolve(message('m', 1));
    },
  });
  c.send({ type: 'TEXT', data: { text: 'hello' } });
  await until(() => !!c.state.value.pending[0]?.problem);
  refuse = false;
  c.retry(c.state.value.pending[0]!.key);
  await until(() => c.state.value.pending.length === 0);
  assert.equal(keys.size, 1);
});

test('replies are sent in order', async () => {
  const sent: string[] = [];
  let release = () => {};
  const { c } = conversation({
    send: async (body) => {
      if (!sent.length) await new Promise<void>((done) => (release = done));
      sent.push((body.data as { text: string }).text);
      return message(sent.at(-1)!, sent.length);
    },
  });
  c.send({ type: 'TEXT', data: { text: 'one' } });
  c.send({ type: 'TEXT', data: { text: 'two' } });
  await new Promise((done) => setImmediate(done));
  release();
  await until(() => sent.length === 2);
  assert.deepEqual(sent, ['one', 'two']);
});

test('a live event and the response result in one message', async () => {
  const { c } = conversation({ send: () => Promise.resolve(message('m', 1, { status: 'accepted' })) });
  c.send({ type: 'TEXT', data: { text: 'hello' } });
  c.onMessage(message('m', 1, { status: 'delivered' }));
  await until(() => c.state.value.pending.length === 0);
  assert.deepEqual(
    c.state.value.messages.map((m) => [m.id, m.status]),
    [['m', 'delivered']],
  );
});

test('older pages are prepended; after a reset, a newest page without overlap replaces all messages', async () => {
  let pages = [
    { messages: [message('c', 3), message('d', 4)], more: true },
    { messages: [message('a', 1), message('b', 2)], more: false },
  ];
  const { c } = conversation({ page: (before) => Promise.resolve(before ? pages[1]! : pages[0]!) });
  await c.load();
  await c.loadOlder();
  assert.deepEqual(
    c.state.value.messages.map((m) => m.id),
    ['a', 'b', 'c', 'd'],
  );
  assert.equal(c.state.value.older, 'none');
  pages = [{ messages: [message('y', 60), message('z', 61)], more: true }, pages[1]!];
  await c.load();
  assert.deepEqual(
    c.state.value.messages.map((m) => m.id),
    ['y', 'z'],
  );
  assert.equal(c.state.value.older, 'more');
});

test('viewers expire without presence events and exclude the current agent', () => {
  const { c } = conversation({});
  const event = { chatId: 'c', expiresInSeconds: 30 };
  c.onPresence({ ...event, userId: 'me', name: 'Me' }, 0);
  c.onPresence({ ...event, userId: 'x', name: 'X' }, 0);
  assert.deepEqual(
    c.state.value.viewers.map((l) => l.userId),
    ['x'],
  );
  c.expire(29_999);
  assert.equal(c.state.value.viewers.length, 1);
  c.expire(30_000);
  assert.equal(c.state.value.viewers.length, 0);
});

test("a message ends the typing of its side, and the agent's own typing is not shown", () => {
  const { c } = conversation({ clock: { now: () => 0, set: () => 0, clear() {} } });
  const typing = (more: object) => c.onTyping({ visitorId: 'v', appId: 'a', side: 'support', at: at(1), ...more });
  typing({ side: 'visitor' });
  typing({ userId: 'me', name: 'Me' });
  typing({ userId: 'x', name: 'X' });
  assert.equal(c.state.value.visitorTyping, true);
  assert.deepEqual(c.state.value.typing, ['X']);
  c.onMessage(message('m', 2));
  assert.equal(c.state.value.visitorTyping, true, 'a message from support does not end the typing of the visitor');
  assert.deepEqual(c.state.value.typing, []);
  c.onMessage(message('v', 2, { isFromSupport: false }));
  assert.equal(c.state.value.visitorTyping, false);
});

test('seenUpTo only advances, and a status never regresses', async () => {
  const { c } = conversation({
    page: () => Promise.resolve({ messages: [message('a', 1, { status: 'delivered' })], more: false, seenUpTo: at(1) }),
  });
  await c.load();
  c.onSeen(at(3));
  c.onSeen(at(2));
  assert.equal(c.state.value.seenUpTo, at(3));
  c.onStatus('a', 'read');
  c.onStatus('a', 'delivered');
  c.onStatus('unknown', 'read');
  assert.deepEqual(
    c.state.value.messages.map((m) => [m.id, m.status]),
    [['a', 'read']],
  );
});
