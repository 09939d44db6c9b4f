import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BotCall, BotUsage } from '../src/api/types.js';
import { answeredBy, conversationOf, levelOf, measuresOf, percentOf, questionOf } from '../src/applications/botcall.js';

const call = (more: Partial<BotCall> = {}): BotCall => ({
  id: '1',
  appId: 'a',
  at: '2026-11-28T12:00:00.000Z',
  version: 3,
  kind: 'model',
  sent: [],
  answer: 'Hello!',
  milliseconds: 1850,
  ...more,
});

const body = (message: unknown): BotCall =>
  call({ kind: 'webhook', sent: [{ role: 'body', text: JSON.stringify({ chatId: 'c', message }) }] });

test('a conversation has what was said, and ends with the question', () => {
  const said = [
    { question: 'hello', call: call() },
    { question: 'and now?', call: call({ answer: '', failure: { reason: 'LLM_TIMEOUT', message: 'Too late' } }) },
  ];
  assert.deepEqual(conversationOf(said, 'still there?'), [
    { role: 'user', text: 'hello' },
    { role: 'assistant', text: 'Hello!' },
    { role: 'user', text: 'and now?' },
    { role: 'user', text: 'still there?' },
  ]);
});

test('a long conversation has its last messages', () => {
  const said = Array.from({ length: 30 }, (_, i) => ({ question: `question ${i}`, call: call() }));
  const turns = conversationOf(said, 'last');
  assert.equal(turns.length, 40);
  assert.deepEqual(turns.at(-1), { role: 'user', text: 'last' });
});

test('the question of a call is the last one of the user', () => {
  const sent: BotCall['sent'] = [
    { role: 'system', text: 'You are Polly.' },
    { role: 'user', text: 'hello' },
    { role: 'assistant', text: 'Hello!' },
    { role: 'user', text: 'Where is my parcel?' },
  ];
  assert.equal(questionOf(call({ sent })), 'Where is my parcel?');
  assert.equal(questionOf(call()), '');
});

test('the question of a webhook is the message in its body', () => {
  const text = { id: 'm', type: 'TEXT', data: { text: 'Where is my parcel?' }, isFromSupport: false };
  assert.equal(questionOf(body(text)), 'Where is my parcel?');
  assert.equal(questionOf(body({ type: 'IMAGE', data: { fileName: 'parcel.png' } })), 'Picture: parcel.png');
  assert.equal(questionOf(body(undefined)), '');
  assert.equal(questionOf(call({ sent: [{ role: 'body', text: '{"message":{"da' }] })), '', 'a body that is cut');
});

test('a call is measured by its duration, its tokens and its cost', () => {
  assert.deepEqual(measuresOf(call()), ['1,850 ms']);
  const used = { inputTokens: 1200, outputTokens: 34, cost: 0.00053440001, currency: 'EUR' };
  assert.deepEqual(measuresOf(call(used)), ['1,850 ms', '1,234 tokens', '0.000534 EUR']);
  assert.deepEqual(measuresOf(call({ outputTokens: 1, cost: 2 })), ['1,850 ms', '1 token', '2']);
});

test('what answered is a version, or none', () => {
  assert.equal(answeredBy(call({ model: 'small' })), 'Version 3 · Language model · small');
  assert.equal(answeredBy(call({ version: 0, kind: 'demo' })), 'Operator’s default, or a draft · Demo bot');
});

test('the level of the usage is that of the bound that is used most', () => {
  const usage = (questions: number, tokens: number, bounds = { questions: 1000, tokens: 0 }): BotUsage => ({
    today: { questions, tokens },
    bounds,
    days: [],
  });
  assert.deepEqual(levelOf(usage(799, 1e9)), { level: 'free', percent: 79 });
  assert.deepEqual(levelOf(usage(800, 0)), { level: 'near', percent: 80 });
  assert.deepEqual(levelOf(usage(999, 0)), { level: 'near', percent: 99 });
  assert.deepEqual(levelOf(usage(1000, 0)), { level: 'reached', percent: 100 });
  assert.deepEqual(levelOf(usage(10, 95, { questions: 1000, tokens: 100 })), { level: 'near', percent: 95 });
  assert.equal(percentOf(5, 0), 0, 'no bound');
});
