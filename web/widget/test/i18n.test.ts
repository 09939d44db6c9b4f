import assert from 'node:assert/strict';
import { test } from 'node:test';

import en from '../src/i18n/en.js';
import type { Plural, Strings } from '../src/i18n/strings.js';

const load = async (code: string): Promise<Strings> =>
  ((await import(`../src/i18n/${code}.ts`)) as { default: Strings }).default;

const CODES = [
  'ar',
  'de',
  'es',
  'fa',
  'fr',
  'he',
  'hi',
  'id',
  'it',
  'ja',
  'ko',
  'nl',
  'pl',
  'pt',
  'ru',
  'tr',
  'uk',
  'vi',
  'zh',
];

/** Texts that are correctly identical to English. No other text may be. */
const SAME_AS_ENGLISH: Partial<Record<keyof Strings, string[]>> = {
  saidBy: CODES.filter((code) => !['fr', 'ja', 'zh'].includes(code)),
  titleUnread: CODES,
  online: ['de', 'id', 'it', 'nl', 'pl', 'pt'],
  email: ['id', 'it', 'vi'],
  optional: ['de'],
  messages: ['fr'],
  video: ['de', 'es', 'id', 'it', 'nl', 'tr', 'vi'],
  audio: ['de', 'es', 'fr', 'id', 'it', 'nl'],
  file: ['id', 'it'],
};

/** Languages whose texts have no Latin letters outside placeholders. */
const NOT_LATIN = ['ar', 'fa', 'he', 'hi', 'ja', 'ko', 'ru', 'uk', 'zh'];

const keys = Object.keys(en) as (keyof Strings)[];
const isPlural = (value: string | Plural): value is Plural => typeof value !== 'string';
const placeholders = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map((m) => m[1]!).sort();

/** All texts of a language. Plural texts are named by key and category, such as "unread.few". */
const texts = (strings: Strings): [name: string, key: keyof Strings, text: string][] =>
  keys.flatMap((key) => {
    const value = strings[key];
    return isPlural(value)
      ? Object.entries(value).map(([c, t]): [string, keyof Strings, string] => [`${key}.${c}`, key, t])
      : [[key, key, value]];
  });

/** The plural categories of a language. `single` has those that match exactly one number, such as "one" in German but not in Russian. */
function categories(code: string) {
  const rules = new Intl.PluralRules(code);
  const numbers = new Map<string, number>();
  for (let n = 0; n <= 1000; n++) numbers.set(rules.select(n), (numbers.get(rules.select(n)) ?? 0) + 1);
  return {
    all: [...rules.resolvedOptions().pluralCategories].sort(),
    single: new Set([...numbers].filter(([, count]) => count === 1).map(([c]) => c)),
  };
}

for (const code of ['en', ...CODES]) {
  test(`${code}: complete`, async () => {
    const strings = await load(code);
    assert.deepEqual(Object.keys(strings).sort(), [...keys].sort());

    const { all, single } = categories(code);
    for (const key of keys) {
      const [got, source] = [strings[key], en[key]];
      assert.equal(isPlural(got), isPlural(source), key);
      if (!isPlural(got) || !isPlural(source)) continue;
      assert.deepEqual(Object.keys(got).sort(), all, `plural categories of ${key}`);
    }
    for (const [name, key, text] of texts(strings)) {
      const source = en[key];
      const want = placeholders(isPlural(source) ? source.other : source);
      const got = placeholders(text);
      const category = name.slice(key.length + 1);
      // A category for exactly one number may spell the number out, as in "two messages".
      if (!(got.length === 0 && single.has(category))) assert.deepEqual(got, want, `placeholders in ${name}: ${text}`);
    }
  });

  test(`${code}: well written`, async () => {
    for (const [name, key, text] of texts(await load(code))) {
      const failure = (what: string) => `${what} in ${name}: ${JSON.stringify(text)}`;
      const words = text.replace(/\{\w+\}/g, '');
      assert.match(words, /[\p{L}\p{P}]/u, failure('empty text'));
      assert.doesNotMatch(text, /^\s|\s$|\s\s|\t|\n/, failure('stray space'));
      assert.doesNotMatch(text, /\.\.\.|["']/, failure('ASCII ellipsis or quotes'));
      assert.doesNotMatch(
        text,
        /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/,
        failure('bidi control character'),
      );
      assert.equal(text, text.normalize('NFC'), failure('text not in NFC'));
      if (code !== 'en')
        assert.equal(
          texts(en).some(([, k, t]) => k === key && t === text),
          !!SAME_AS_ENGLISH[key]?.includes(code),
          failure('SAME_AS_ENGLISH does not match'),
        );
      if (NOT_LATIN.includes(code)) assert.doesNotMatch(words, /\p{Script=Latin}/u, failure('Latin letters'));
      if (code === 'fa')
        assert.doesNotMatch(text, /[يكىة\d٠-٩]/, failure('Arabic letters, or digits that are not Persian'));
      if (code === 'fr') assert.doesNotMatch(text, /[^\u00a0\u202f][:;?!]/, failure('colon without a no-break space'));
      if (code === 'de') assert.doesNotMatch(text, /[^\u00a0]…/, failure('ellipsis without a no-break space'));
      if (code === 'es') assert.equal(text.includes('?'), text.includes('¿'), failure('unpaired question mark'));
      if (['ar', 'fa'].includes(code))
        assert.doesNotMatch(text, /[,;?]/, failure('Latin comma, semicolon or question mark'));
      if (['ja', 'zh'].includes(code) && key !== 'titleUnread')
        assert.doesNotMatch(words, /[,;:?!.()]/, failure('half-width punctuation'));
    }
  });
}

test('numbers select the plural form of the language', async () => {
  const unread: Record<string, [n: number, text: string][]> = {
    en: [
      [1, '{n} unread message'],
      [0, '{n} unread messages'],
    ],
    ar: [
      [0, 'لا رسائل غير مقروءة'],
      [1, 'رسالة واحدة غير مقروءة'],
      [2, 'رسالتان غير مقروءتين'],
      [103, '{n} رسائل غير مقروءة'],
      [11, '{n} رسالة غير مقروءة'],
    ],
    fr: [
      [0, '{n} message non lu'],
      [2, '{n} messages non lus'],
      [1_000_000, '{n} de messages non lus'],
    ],
    he: [
      [2, 'שתי הודעות שלא נקראו'],
      [3, '{n} הודעות שלא נקראו'],
    ],
    pl: [
      [1, '{n} nieprzeczytana wiadomość'],
      [5, '{n} nieprzeczytanych wiadomości'],
      [22, '{n} nieprzeczytane wiadomości'],
    ],
    ru: [
      [21, '{n} непрочитанное сообщение'],
      [3, '{n} непрочитанных сообщения'],
      [11, '{n} непрочитанных сообщений'],
    ],
    uk: [
      [21, '{n} непрочитане повідомлення'],
      [3, '{n} непрочитані повідомлення'],
      [11, '{n} непрочитаних повідомлень'],
    ],
    ja: [[1, '未読メッセージ{n}件']],
  };
  for (const [code, cases] of Object.entries(unread)) {
    const forms = (await load(code)).unread;
    for (const [n, text] of cases) assert.equal(forms[new Intl.PluralRules(code).select(n)], text, `${code} ${n}`);
  }
});

test('the offline form promises an answer in the chat only, in every language', async () => {
  for (const code of ['en', ...CODES]) {
    const { offlineSent } = await load(code);
    assert.doesNotMatch(offlineSent, /mail|posta|correo|почт|пошт|بريد|ایمیل|דוא|ईमेल|メール|이메일|邮件/i, code);
  }
});
