import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parsePlace } from '../src/lib/router.js';

test('a fragment is a path in parts and a query', () => {
  const p = parsePlace('#/inbox/a%2Fb?view=mine&q=x%20y');
  assert.deepEqual(p.parts, ['inbox', 'a/b']);
  assert.equal(p.query.get('q'), 'x y');
  assert.equal(p.path, '/inbox/a%2Fb');
  assert.deepEqual(parsePlace('').parts, []);
  assert.deepEqual(parsePlace('#/inbox/%E0%A4%A').parts, ['inbox', '%E0%A4%A'], 'a broken escape stays as it is');
});
