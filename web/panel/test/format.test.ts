import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  count,
  formatAgo,
  formatBytes,
  formatDay,
  formatDuration,
  formatShort,
  formatUTCDay,
  initials,
} from '../src/lib/format.js';

test('durations show their two largest units', () => {
  for (const [seconds, want] of [
    [0, '0 s'],
    [59, '59 s'],
    [60, '1 min'],
    [61, '1 min 1 s'],
    [3600, '1 h'],
    [3661, '1 h 1 min'],
    [93_600, '1 d 2 h'],
    [86_401, '1 d'],
  ] as const) {
    assert.equal(formatDuration(seconds), want);
  }
});

test('times are as short as possible without ambiguity', () => {
  const now = new Date(2026, 4, 20, 12, 0).getTime();
  assert.equal(formatShort(new Date(2026, 4, 20, 9, 5).getTime(), now), '09:05');
  assert.equal(formatShort(new Date(2026, 4, 19, 9, 5).getTime(), now), 'May 19');
  assert.equal(formatShort(new Date(2025, 4, 19).getTime(), now), 'May 19, 2025');
  assert.equal(formatDay(now, now), 'Today');
  assert.equal(formatDay(new Date(2026, 4, 19, 23).getTime(), now), 'Yesterday');
  assert.equal(formatAgo(now - 10_000, now), 'just now');
  assert.equal(formatAgo(now - 300_000, now), '5 min ago');
  assert.equal(formatAgo(now - 2 * 3_600_000 - 1000, now), '2 h ago');
});

test('a day of UTC is the same in any time zone', () => {
  assert.equal(formatUTCDay('2026-11-28'), 'Nov 28, 2026');
});

test('numbers, sizes and initials', () => {
  assert.equal(count(1, ['chat', 'chats']), '1 chat');
  assert.equal(count(1200, ['chat', 'chats']), '1,200 chats');
  assert.equal(formatBytes(1536), '1.5 kB');
  assert.equal(initials('Ada Lovelace'), 'AL');
  assert.equal(initials('ada@example.com'), 'AE');
  assert.equal(initials(''), '?');
});
