import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mangleProps } from '../mangle.mjs';
import type { OutboxItem } from '../src/state/outbox.js';
import type { SessionRecord } from '../src/state/storage.js';

/** All members of T. Does not compile if one is missing. */
type Names<T> = Record<keyof Required<T>, true>;

const record: Names<SessionRecord> = {
  token: true,
  unreadCount: true,
  pending: true,
  colours: true,
  read: true,
  muted: true,
  fingerprint: true,
  skippedRating: true,
  registration: true,
  recovery: true,
};
const recovery: Names<NonNullable<SessionRecord['recovery']>> = { pid: true, offset: true, at: true };
const item: Names<OutboxItem> = { key: true, at: true, body: true, file: true, tried: true, failed: true };
const body: Names<NonNullable<OutboxItem['body']>> = { type: true, data: true };
const file: Names<NonNullable<OutboxItem['file']>> = { name: true, size: true, mime: true, caption: true };

test('what is stored has the same names in the loader, in the chat and in the next release', () => {
  const stored = [record, recovery, item, body, file].flatMap((names) => Object.keys(names));
  assert.deepEqual(
    stored.filter((name) => mangleProps.test(name)),
    [],
  );
});
