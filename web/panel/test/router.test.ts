import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseRoute } from '../src/lib/router.js';

test('a fragment is parsed into path segments and a query', () => {
  const p = parseRoute('#/inbox/a%2Fb?view=mine&q=x%20y');
  assert.deepEqual(p.parts, ['inbox', 'a/b']);
  assert.equal(p.query.get('q'), 'x y');
  assert.equal(p.path, '/inbox/a%2Fb');
  assert.deepEqual(parseRoute('').parts, []);
  assert.deepEqual(parseRoute('#/inbox/%E0%A4%A').parts, ['inbox', '%E0%A4%A'], 'an invalid escape stays unchanged');
});
