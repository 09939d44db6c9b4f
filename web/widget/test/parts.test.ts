import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readPart, type Part } from '@parley/shared/parts.js';
import { initial, reduce, type State } from '../src/state/reducer.js';

const part = (n: number, offset: number, text: string, more: Partial<Part> = {}): Part => ({
  messageId: 'a',
  n,
  offset,
  text,
  createdAt: '2026-03-14T15:09:26.535Z',
  nameOfSender: offset ? '' : 'Polly',
  format: offset ? '' : 'markdown',
  done: false,
  ...more,
});
const take = (s: State, ...parts: Part[]) => parts.reduce((state, p) => reduce(state, { type: 'part', part: p }), s);
const final = {
  id: 'a',
  createdAt: '2026-03-14T15:09:26.535Z',
  type: 'TEXT',
  data: { text: 'Hello 👍 you' },
  nameOfSender: 'Polly',
  isFromSupport: true,
};

test('appends each part once; after a gap, ignores parts until one has the whole text', () => {
  let s = take(initial, part(0, 0, 'Hello '), part(1, 6, '👍'), part(2, 8, ' you'));
  assert.equal(s.streaming?.text, 'Hello 👍 you');
  assert.equal(s.streaming?.format, 'markdown');
  assert.equal(take(s, part(1, 6, '👍'), part(4, 20, '!')), s, 'a duplicate and a part after a gap change nothing');
  s = take(s, part(5, 0, 'Hello 👍 you, dear!'), part(6, 19, ' Bye.'));
  assert.equal(s.streaming?.text, 'Hello 👍 you, dear! Bye.');
  s = take(s, part(7, 0, 'Another '), part(8, 8, 'attempt'));
  assert.equal(s.streaming?.text, 'Another attempt', 'a bot that starts over replaces the text');
  assert.equal(take(initial, part(3, 6, 'late')).streaming, undefined);
});

test('the final message replaces the streamed text, in any order of arrival', () => {
  const shown = take(initial, part(0, 0, 'Hello '));
  const s = reduce(shown, { type: 'messages', messages: [final] });
  assert.equal(s.streaming, undefined);
  assert.equal(take(s, part(1, 6, 'x'), part(2, 0, 'Hello again')), s, 'parts of a complete message are ignored');
  const other = reduce(shown, { type: 'messages', messages: [{ ...final, id: 'b' }] });
  assert.equal(other.streaming?.text, 'Hello ', 'another message does not affect the stream');
});

test('a finished stream without a final message is removed, and a stalled one counts as finished', () => {
  const s = take(initial, part(0, 0, 'Hello '), part(1, 6, '', { done: true }));
  assert.equal(s.streaming?.done, true);
  assert.equal(reduce(s, { type: 'streamDropped', messageId: 'a' }).streaming, undefined);
  assert.equal(reduce(s, { type: 'streamDropped', messageId: 'b' }), s);
  const stalled = reduce(take(initial, part(0, 0, 'Half ')), { type: 'streamStalled', messageId: 'a' });
  assert.deepEqual([stalled.streaming?.text, stalled.streaming?.done], ['Half ', true]);
  assert.equal(take(stalled, part(1, 0, 'Once more')).streaming?.done, false);
  assert.equal(reduce(take(initial, part(0, 0, 'x')), { type: 'ended' }).streaming, undefined);
});

test('rejects malformed parts', () => {
  for (const wrong of [
    null,
    'x',
    {},
    { messageId: 'a' },
    { messageId: 'a', n: -1, offset: 0 },
    { messageId: 'a', n: 'x', offset: 0 },
  ])
    assert.equal(readPart(wrong), undefined);
  assert.deepEqual(readPart({ messageId: 'a', n: 0, offset: 0, text: 'x', chatId: 'c' }), {
    messageId: 'a',
    n: 0,
    offset: 0,
    text: 'x',
    createdAt: '',
    nameOfSender: '',
    format: '',
    done: false,
  });
});
