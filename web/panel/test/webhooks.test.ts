import assert from 'node:assert/strict';
import { test } from 'node:test';
import { indented, parseHeaders } from '../src/webhooks/headers.js';

test('headers are parsed from lines of a name and a value', () => {
  assert.deepEqual(parseHeaders('X-Api-Key: a:b c\n\n  X-Shop:1 '), { 'X-Api-Key': 'a:b c', 'X-Shop': '1' });
  assert.deepEqual(parseHeaders(''), {});
  for (const wrong of ['X-Api-Key', 'X-Api-Key:', 'X Api: 1', ': 1'])
    assert.equal(parseHeaders(wrong), undefined, wrong);
});

test('a body that is not JSON is shown unchanged', () => {
  assert.equal(indented('{"a":1}'), '{\n  "a": 1\n}');
  assert.equal(indented('not JSON'), 'not JSON');
});
