import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Message } from '@parley/shared/message.js';
import type { Session } from '../src/state/session.js';
import { Support } from '../src/state/support.js';

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
