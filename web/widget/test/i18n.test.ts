import assert from 'node:assert/strict';
import { test } from 'node:test';
import languages from 'languages';
import en from '../src/i18n/en.js';
import { Language, loadLanguage } from '../src/i18n.js';

const WANTED = ['ar', 'de', 'en', 'es', 'fa', 'fr', 'he', 'hi', 'id', 'it', 'ja', 'ko', 'nl', 'pl', 'pt', 'ru', 'tr', 'uk', 'vi', 'zh'];
const values = (text: string) => [...text.matchAll(/\{\w+\}/g)].map((m) => m[0]).sort();

test('there are twenty languages', () => assert.deepEqual(Object.keys(languages).sort(), WANTED));

for (const [code, load] of Object.entries(languages)) {
  test(`${code} is complete`, async () => {
    const strings = (await load()).default as unknown as Record<string, string | Record<string, string>>;
    assert.deepEqual(Object.keys(strings).sort(), Object.keys(en).sort(), 'the keys are those of English');
    for (const [key, source] of Object.entries(en as unknown as typeof strings)) {
      const text = strings[key]!;
      if (typeof source === 'string') {
        assert.equal(typeof text, 'string', key);
        assert.ok((text as string).trim(), `${key} has a text`);
        assert.deepEqual(values(text as string), values(source), `${key} names the same values`);
        continue;
      }
      const wanted = new Intl.PluralRules(code).resolvedOptions().pluralCategories;
      assert.deepEqual(Object.keys(text).sort(), [...wanted].sort(), `${key} has the plural categories of ${code}`);
      assert.match((text as Record<string, string>).other!, /\{n\}/, `${key} names the number`);
    }
  });
}

test('a tag finds its language, and an unknown one English', async () => {
  assert.equal((await loadLanguage('en-GB')).locale, 'en-GB');
  assert.equal((await loadLanguage('xx')).code, 'en');
  assert.equal((await loadLanguage('not a tag!')).code, 'en');
});

test('plurals, sizes and days are those of the language', () => {
  const l = new Language('en', en);
  assert.equal(l.n('newMessages', 1), '1 new message');
  assert.equal(l.n('newMessages', 1200), '1,200 new messages');
  assert.equal(l.bytes(26214400), '25 MB');
  const now = Date.parse('2026-03-14T12:00:00');
  assert.equal(l.day(now - 86_400_000, now), 'Yesterday');
  assert.equal(l.ago(now - 5 * 60_000, now), '5 min. ago');
});
