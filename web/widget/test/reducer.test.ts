import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Message } from '@parley/shared/message.js';
import { initial, newestReply, reduce, type State } from '../src/state/reducer.js';

const message = (n: number, isFromSupport = true): Message => ({
  id: `id-${String(n).padStart(5, '0')}`,
  createdAt: new Date(1_700_000_000_000 + n * 1000).toISOString(),
  type: 'TEXT',
  data: { text: `m${n}` },
  nameOfSender: 'Polly',
  isFromSupport,
});
const ids = (s: State) => s.messages.map((m) => Number(m.id.slice(3)));
const add = (s: State, ...messages: Message[]) => reduce(s, { type: 'messages', messages });

test('keeps messages in history order without duplicates, in any order of arrival', () => {
  let s = add(initial, message(5), message(6));
  s = add(s, message(7));
  s = add(s, message(2), message(3));
  s = add(s, message(4), message(6), message(1));
  assert.deepEqual(ids(s), [1, 2, 3, 4, 5, 6, 7]);
  assert.equal(add(s, message(3)), s, 'a known message changes nothing');
});

test('a message keeps its ordinal when older ones are loaded', () => {
  const ordinal = (s: State, id: string) => s.firstOrdinal + s.messages.findIndex((m) => m.id === id);
  let s = add(initial, message(50), message(51));
  const before = ordinal(s, 'id-00051');
  s = add(s, message(10), message(11), message(12));
  assert.equal(ordinal(s, 'id-00051'), before);
  s = add(s, message(5), message(60));
  assert.equal(ordinal(s, 'id-00051'), before);
});

test('counts messages from the other side after the read cursor as unread', () => {
  let s = add(initial, message(1), message(2, false), message(3), message(4));
  assert.equal(s.unread, 3);
  const { createdAt, id } = message(3);
  s = reduce(s, { type: 'read', read: [createdAt, id] });
  assert.equal(s.unread, 1);
  s = reduce(s, { type: 'read', read: [message(1).createdAt, message(1).id] });
  assert.equal(s.unread, 1, 'the read cursor never moves back');
  assert.equal(newestReply(s)?.id, message(4).id);
});

test('the end of a session removes its messages, but keeps the outbox if the server ended it', () => {
  const item = { key: 'k', at: 1, body: { type: 'TEXT' as const, data: { text: 'hi' } } };
  let s = reduce(add({ ...initial, phase: 'chat' }, message(1)), { type: 'outbox', outbox: [item] });
  const ended = reduce(s, { type: 'ended', notice: 'sessionEnded' });
  assert.deepEqual([ended.phase, ended.messages.length, ended.outbox.length], ['form', 0, 1]);
  s = reduce(s, { type: 'ended' });
  assert.deepEqual([s.phase, s.outbox.length, s.unread], ['form', 0, 0]);
});

test('an earlier chat precedes the messages, counts as read, and has a mark at its end', () => {
  let s = reduce(add(initial, message(10, false)), { type: 'end', message: message(3) });
  s = reduce(s, { type: 'messages', messages: [message(1), message(2), message(3)], more: true });
  assert.deepEqual([ids(s), s.unread, s.ends], [[1, 2, 3, 10], 0, ['id-00003']]);
  assert.equal(add(s, message(11)).unread, 1, 'a new reply is unread');
  assert.deepEqual(reduce(s, { type: 'ended' }).ends, []);
});
