import assert from 'node:assert/strict';
import { test } from 'node:test';
import { windowOf } from '../src/ui/virtual.js';

test('of 100,000 rows only those near the viewport are rendered', () => {
  const { from, to } = windowOf(50_000 * 76, 800, 76, 100_000, 8);
  assert.equal(from, 49_992);
  assert.equal(to, 50_000 + Math.ceil(800 / 76) + 8);
  assert.deepEqual(windowOf(0, 800, 76, 3), { from: 0, to: 3 });
  assert.deepEqual(windowOf(9_999_999, 800, 76, 10), { from: 10, to: 10 }, 'the list has become shorter');
});
