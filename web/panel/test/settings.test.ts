import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  cleaned,
  formFields,
  greetings,
  originOf,
  shownColour,
  unreadable,
  withField,
  withGreetings,
  withKey,
} from '../src/applications/draft.js';
import { differences } from '../src/people/diff.js';
import { browserOf } from '../src/people/sessions.js';
import { healthOf, ratesOf } from '../src/streams/rates.js';
import { stepsOf } from '../src/streams/trace.js';
import { placeholders, renderTemplate } from '../src/templates/placeholders.js';
import { curlFor, quote } from '../src/tokens/curl.js';

test('unknown widget settings are kept', () => {
  const configs = {
    somethingNew: { a: [1] },
    primaryBackgroundColor: '#123456',
    formInputs: ['email', 'orderNumber'],
    requiredFields: ['email'],
  };
  assert.deepEqual(withKey(configs, 'primaryBackgroundColor', ''), {
    somethingNew: { a: [1] },
    formInputs: ['email', 'orderNumber'],
    requiredFields: ['email'],
  });
  const changed = withField(configs, 'firstName', 'required');
  assert.deepEqual(changed.formInputs, ['firstName', 'email', 'orderNumber']);
  assert.deepEqual(changed.requiredFields, ['firstName', 'email']);
  assert.deepEqual(changed.somethingNew, { a: [1] });
  assert.deepEqual(
    formFields(configs).find((f) => f.name === 'orderNumber'),
    { name: 'orderNumber', mode: 'optional' },
  );
});

test('empty greetings and origins are not sent', () => {
  const d = cleaned({
    name: ' Shop ',
    botName: 'Polly',
    widgetConfigs: withGreetings({ x: 1 }, ['Hello', ' ']),
    allowedOrigins: ['https://a.example', ''],
    fileRetentionSeconds: 0,
  });
  assert.deepEqual(d, {
    name: 'Shop',
    botName: 'Polly',
    widgetConfigs: { x: 1, greetingMessages: [{ content: 'Hello' }] },
    allowedOrigins: ['https://a.example'],
    fileRetentionSeconds: 0,
  });
  assert.deepEqual(greetings({}), []);
  const translated = { content: 'Hello', translations: { de: 'Hallo' } };
  assert.deepEqual(
    withGreetings({ greetingMessages: [{ content: 'Hi' }, translated] }, ['Hello']).greetingMessages,
    [translated],
    'a greeting keeps its translations',
  );
  assert.deepEqual(withGreetings({ greetingMessages: [translated] }, ['Hello!']).greetingMessages, [
    { ...translated, content: 'Hello!' },
  ]);
  assert.equal('greetingMessages' in cleaned({ ...d, widgetConfigs: {} }).widgetConfigs, false);
});

test('colours and their contrast', () => {
  assert.equal(shownColour({ primaryBackgroundColor: '#ff0000' }, 'sentMessageBubbleBgColor'), '#ff0000');
  assert.deepEqual(unreadable({}), []);
  assert.deepEqual(
    unreadable({ primaryTextColor: '#0f766e' }).map((u) => u.text),
    ['primaryTextColor'],
  );
});

test('origins are normalized as browsers send them', () => {
  assert.equal(originOf('https://www.example.com/shop?x'), 'https://www.example.com');
  assert.equal(originOf('www.example.com'), 'https://www.example.com');
  assert.equal(originOf('ftp://x'), undefined);
  assert.equal(originOf('not an origin'), undefined);
});

test('placeholders are parsed as on the server', () => {
  assert.deepEqual(placeholders('Hello {{ username }}, {{order}} and {{order}}: {{open'), ['username', 'order']);
  const t = { text: 'Hi {{username}}, {{order}}{{nothing}}!', parameters: [{ name: 'order', default: '1042' }] };
  assert.equal(renderTemplate(t, { username: 'Ada' }), 'Hi Ada, 1042!');
});

test('the curl command is quoted for the shell', () => {
  assert.equal(quote("it's"), `'it'\\''s'`);
  assert.equal(
    curlFor('https://api.example.com/', 'pat_1'),
    `curl -X POST https://api.example.com/message/send -H 'x-access-token: pat_1' -H 'Content-Type: application/json' -d '{"type":"TEXT","data":{"text":"Hello from the API"},"chatId":"CHAT_ID"}'`,
  );
});

test('rates are computed from two responses', () => {
  const answer = (at: string, n: number) => ({
    at,
    streams: [
      {
        name: 'INBOUND',
        messages: n,
        bytes: 0,
        maxBytes: 0,
        lastSequence: n,
        consumers: [
          {
            name: 'bot',
            pending: 0,
            ackPending: 0,
            redelivered: 0,
            oldestAgeSeconds: 0,
            read: true,
            deliveredSequence: n - 5,
            ackFloor: 0,
            partitions: [],
          },
        ],
      },
    ],
    waiting: [],
  });
  const now = answer('2026-01-01T00:00:02.000Z', 120);
  assert.deepEqual(ratesOf(undefined, now), { streams: {}, consumers: {} });
  assert.deepEqual(ratesOf(answer('2026-01-01T00:00:00.000Z', 100), now), {
    streams: { INBOUND: 10 },
    consumers: { 'INBOUND bot': 10 },
  });
  const c = { pending: 3, ackPending: 0, oldestAgeSeconds: 90, read: true };
  assert.equal(healthOf(c), 'lagging');
  assert.equal(healthOf({ ...c, read: false }), 'inactive');
  assert.equal(healthOf({ ...c, oldestAgeSeconds: 2 }), 'good');
});

test('the steps of a trace are in chronological order', () => {
  const steps = stepsOf({
    messageId: 'm',
    status: {
      acceptedAt: '2026-01-01T00:00:00.000Z',
      storedAt: '2026-01-01T00:00:00.020Z',
      deliveredAt: '2026-01-01T00:00:00.090Z',
    },
    stored: { chatId: 'c', type: 'TEXT', createdAt: '2026-01-01T00:00:00.000Z' },
    events: [
      {
        time: '2026-01-01T00:00:00.010Z',
        stream: 'INBOUND',
        sequence: 7,
        consumers: [{ name: 'bot', state: 'dead', lastError: 'no' }],
      },
    ],
    deadLetters: [{ sequence: 3, time: '2026-01-01T00:00:01.000Z', reason: 'no' }],
  });
  assert.deepEqual(
    steps.map((s) => s.title),
    ['Accepted', 'INBOUND #7', 'In the history', 'Delivered to the browser', 'Dead letter #3'],
  );
  assert.equal(steps[1]!.kind, 'bad');
});

test('differences are listed by path', () => {
  assert.deepEqual(differences({ name: 'a', w: { c: '#000', d: 1 } }, { name: 'a', w: { c: '#fff', d: 1 }, x: true }), [
    { path: 'w.c', before: '#000', after: '#fff' },
    { path: 'x', after: 'true' },
  ]);
});

test('values too large for the audit log are shown by their size', () => {
  const digest = (n: string) => ({ bytes: 1048576, sha256: n.repeat(64) });
  assert.deepEqual(differences({ w: digest('a') }, { w: digest('b') }), [
    { path: 'w', before: '1,048,576 bytes (SHA-256 aaaaaaaaaaaa…)', after: '1,048,576 bytes (SHA-256 bbbbbbbbbbbb…)' },
  ]);
});

test('browsers are recognized by their User-Agent', () => {
  assert.equal(
    browserOf('Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/140.0 Safari/537.36 Edg/140.0'),
    'Edge, Windows',
  );
  assert.equal(browserOf(''), 'Unknown browser');
});
