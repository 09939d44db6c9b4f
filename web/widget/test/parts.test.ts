import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readPart, type Part } from '@parley/shared/parts.js';
import { initial, reduce, type State } from '../src/state/reducer.js';

const part = (n: number, offset: number, text: string, more: Partial<Part> = {}): Part => ({
  messageId: 'a', n, offset, text, createdAt: '2026-03-14T15:09:26.535Z', nameOfSender: offset ? '' : 'Polly', done: false, ...more,
});
const take = (s: State, ...parts: Part[]) => parts.reduce((state, p) => reduce(state, { type: 'part', part: p }), s);
const final = { id: 'a', createdAt: '2026-03-14T15:09:26.535Z', type: 'TEXT', data: { text: 'Hello 👍 you' }, nameOfSender: 'Polly', isFromSupport: true };

test('parts grow into a text, each once, and a part without what is before it waits for a whole one', () => {
  let s = take(initial, part(0, 0, 'Hello '), part(1, 6, '👍'), part(2, 8, ' you'));
  assert.equal(s.writing?.text, 'Hello 👍 you');
  assert.equal(take(s, part(1, 6, '👍'), part(4, 20, '!')), s, 'an old part and one after a gap change nothing');
  s = take(s, part(5, 0, 'Hello 👍 you, dear!'), part(6, 19, ' Bye.'));
  assert.equal(s.writing?.text, 'Hello 👍 you, dear! Bye.');
  s = take(s, part(7, 0, 'Another '), part(8, 8, 'attempt'));
  assert.equal(s.writing?.text, 'Another attempt', 'a bot that begins anew replaces what was shown');
  assert.equal(take(initial, part(3, 6, 'late')).writing, undefined);
});

test('the message replaces what was shown of it, whichever comes first', () => {
  const shown = take(initial, part(0, 0, 'Hello '));
  const s = reduce(shown, { type: 'messages', messages: [final] });
  assert.equal(s.writing, undefined);
  assert.equal(take(s, part(1, 6, 'x'), part(2, 0, 'Hello again')), s, 'parts of a complete message are ignored');
  const other = reduce(shown, { type: 'messages', messages: [{ ...final, id: 'b' }] });
  assert.equal(other.writing?.text, 'Hello ', 'another message leaves it alone');
});

test('a message that is done without becoming one is dropped, and one that is silent for long is not being written', () => {
  const s = take(initial, part(0, 0, 'Hello '), part(1, 6, '', { done: true }));
  assert.equal(s.writing?.done, true);
  assert.equal(reduce(s, { type: 'dropped', messageId: 'a' }).writing, undefined);
  assert.equal(reduce(s, { type: 'dropped', messageId: 'b' }), s);
  const silent = reduce(take(initial, part(0, 0, 'Half ')), { type: 'silent', messageId: 'a' });
  assert.deepEqual([silent.writing?.text, silent.writing?.done], ['Half ', true]);
  assert.equal(take(silent, part(1, 0, 'Once more')).writing?.done, false);
  assert.equal(reduce(take(initial, part(0, 0, 'x')), { type: 'ended' }).writing, undefined);
});

test('what cannot be read is no part', () => {
  for (const wrong of [null, 'x', {}, { messageId: 'a' }, { messageId: 'a', n: -1, offset: 0 }, { messageId: 'a', n: 'x', offset: 0 }]) assert.equal(readPart(wrong), undefined);
  assert.deepEqual(readPart({ messageId: 'a', n: 0, offset: 0, text: 'x', chatId: 'c' }), { messageId: 'a', n: 0, offset: 0, text: 'x', createdAt: '', nameOfSender: '', done: false });
});
