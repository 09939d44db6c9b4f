import assert from 'node:assert/strict';
import { test } from 'node:test';
import languages from 'languages';
import en from '../src/i18n/en.js';
import fa from '../src/i18n/fa.js';
import { Language, loadLanguage } from '../src/i18n.js';

test('there are twenty languages', () => assert.equal(Object.keys(languages).length, 20));

test('loads the language of a tag, and English for an unknown one', async () => {
  assert.equal((await loadLanguage('en-GB')).locale, 'en-GB');
  assert.equal((await loadLanguage('xx')).code, 'en');
  assert.equal((await loadLanguage('not a tag!')).code, 'en');
});

test('formats plurals, sizes and dates in the language', () => {
  const l = new Language('en', en);
  assert.equal(l.n('newMessages', 1), '1 new message');
  assert.equal(l.n('newMessages', 1200), '1,200 new messages');
  assert.equal(l.bytes(26214400), '25 MB');
  const now = Date.parse('2026-03-14T12:00:00');
  assert.equal(l.day(now - 86_400_000, now), 'Yesterday');
  assert.equal(new Language('fa', fa).day(Date.parse('2026-11-20T12:00:00'), now), 'جمعه ۲۹ آبان ۱۴۰۵');
  assert.equal(l.ago(now - 5 * 60_000, now), '5 min. ago');
});
