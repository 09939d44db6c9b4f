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

test('a time to come is today, tomorrow, a weekday within a week, or a date', async () => {
  const now = new Date(2026, 10, 24, 20, 0).getTime(); // a Tuesday
  const at = (day: number) => new Date(2026, 10, day, 8, 0).getTime();
  const cases: Record<string, Record<number, string>> = {
    en: {
      24: 'today at 8:00 AM',
      25: 'tomorrow at 8:00 AM',
      26: 'Thursday at 8:00 AM',
      30: 'Monday at 8:00 AM',
      31: 'December 1, 2026 at 8:00 AM',
      23: 'November 23, 2026 at 8:00 AM',
    },
    de: { 25: 'morgen um 08:00', 26: 'Donnerstag um 08:00', 31: '1. Dezember 2026 um 08:00' },
    fa: { 25: 'فردا ساعت ۸:۰۰' },
    vi: { 25: 'lúc 08:00 ngày mai' },
  };
  for (const [code, days] of Object.entries(cases)) {
    const l = await loadLanguage(code);
    for (const [day, want] of Object.entries(days))
      assert.equal(l.when(at(Number(day)), now).replace(/\u202f/g, ' '), want, `${code} ${day}`);
  }
  for (const code of Object.keys(languages)) {
    const l = await loadLanguage(code);
    const tomorrow = l.when(at(25), now);
    assert.ok(
      tomorrow.includes(l.time(at(25))) && !tomorrow.includes('2026'),
      `${code}: got ${tomorrow}, want a time without a date`,
    );
  }
});
