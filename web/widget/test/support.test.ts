import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Message } from '@parley/shared/message.js';
import type { Session } from '../src/state/session.js';
import { Support } from '../src/state/support.js';
import { answering } from '../src/ui/support.js';

test('a retry of an offline message has the same idempotency key; an edited or a further one has a new key', async () => {
  const keys: string[] = [];
  let lost = true;
  const session = {
    api: {
      leaveMessage: (_: unknown, key: string) => {
        keys.push(key);
        return lost ? Promise.reject(new Error('response lost')) : Promise.resolve({} as Message);
      },
      chat: () => Promise.resolve({}),
    },
    addOfflineMessage: () => {},
    dispatch: () => {},
  } as unknown as Session;
  const support = new Support(session);
  await assert.rejects(support.sendOfflineMessage('My parcel is damaged.', 'grace@navy.example'));
  await assert.rejects(support.sendOfflineMessage('My parcel is damaged.', 'grace@navy.example'));
  lost = false;
  await support.sendOfflineMessage('My parcel is damaged. It came today.', 'grace@navy.example');
  await support.sendOfflineMessage('My parcel is damaged. It came today.', 'grace@navy.example');
  assert.equal(keys[1], keys[0], 'a retry of the same text');
  assert.equal(new Set(keys).size, 3, `${keys}`);
});

test('the header says who answers: the bot, or agents who are there, or nobody', () => {
  const chat = {
    chatId: 'c',
    status: 'active',
    control: 'agent',
    waiting: true,
    handoverBy: '',
    handoverOffered: false,
    rateableUntil: '',
    available: true,
    online: true,
    opensAt: '',
  };
  assert.equal(answering(undefined), '');
  assert.equal(answering({ ...chat, status: 'closed' }), '', 'nobody yet: the next message opens another chat');
  assert.equal(answering({ ...chat, control: 'bot', available: false, online: false }), 'online');
  assert.equal(answering(chat), 'agentsOnline');
  assert.equal(answering({ ...chat, online: false }), 'away', 'no agent has signed in');
  assert.equal(answering({ ...chat, available: false }), 'away', 'after hours');
  assert.equal(
    answering({ ...chat, available: false, waiting: false }),
    'agentsOnline',
    'an agent has the chat after hours',
  );
  assert.equal(answering({ ...chat, waiting: false, online: false }), 'away', 'the agent has left');
});

test('loads the chat again when an agent answers in the place of the bot, not for each message', () => {
  let loads = 0;
  const state = { chat: { control: 'bot', waiting: false }, settings: { botName: 'Polly' } };
  const chat = () => {
    loads++;
    return new Promise(() => {});
  };
  const support = new Support({ state, api: { chat } } as unknown as Session);
  const from = (nameOfSender: string) =>
    support.refreshAfter({ nameOfSender, isFromSupport: true, type: 'TEXT', data: {} } as unknown as Message);
  from('Polly');
  assert.equal(loads, 0, 'the bot');
  from('Grace');
  assert.equal(loads, 1, 'an agent has taken the chat');
  state.chat.control = 'agent';
  from('Grace');
  assert.equal(loads, 1, 'the agent again');
  from('Polly');
  assert.equal(loads, 2, 'the bot has the chat back');
});
