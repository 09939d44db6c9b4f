import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DocumentWithText } from '../src/api/types.js';
import {
  ACCEPTED,
  answerHref,
  contentOf,
  contentOfFile,
  fetchText,
  formOf,
  MAX_TEXT,
  newForm,
  placeOf,
  sameForm,
} from '../src/documents/document.js';
import { parseRoute } from '../src/lib/router.js';

const utf8 = (text: string) => new TextEncoder().encode(text);

const stored: DocumentWithText = {
  id: '70000000-0000-4000-8000-000000000001',
  companyId: 'c0000000-0000-4000-8000-000000000001',
  title: 'Returns',
  address: 'https://shop.example.com/returns',
  format: 'markdown',
  text: '# Returns\n',
  bytes: 10,
  passages: 1,
  createdAt: '2026-03-01T12:00:00.000Z',
  updatedAt: '2026-03-01T12:00:00.000Z',
  revision: 1,
  refreshHours: 0,
};

test('the form of a document gives its content', () => {
  const { title, address, format, text } = stored;
  assert.deepEqual(contentOf(formOf(stored)), { title, address, format, text });
  assert.deepEqual(contentOf({ ...formOf(stored), title: ' Returns ', address: ' ' }), { title, format, text });
});

test('a document that is fetched sends no text', () => {
  const form = { ...formOf(stored), refreshHours: 6 };
  assert.deepEqual(contentOf(form), { title: stored.title, address: stored.address, refreshHours: 6 });
  assert.deepEqual(contentOf({ ...form, title: ' ' }), { address: stored.address, refreshHours: 6 });
});

test('what came of a fetch is said in words, a failure first', () => {
  const now = Date.parse('2026-03-01T12:00:00Z');
  const nextAt = '2026-03-01T13:00:00Z';
  assert.deepEqual(fetchText({ nextAt: '2026-03-01T12:00:00Z' }, now), ['The text is fetched in a moment.']);
  const failure = {
    code: 'DOCUMENT_REFUSED',
    message: 'The server answered 404 Not Found',
    at: '2026-03-01T11:00:00Z',
  };
  const [failed, fetched, next] = fetchText({ nextAt, fetchedAt: '2026-03-01T10:00:00Z', failure }, now);
  assert.match(failed ?? '', /404 Not Found/);
  assert.match(fetched ?? '', /2 h/);
  assert.match(next ?? '', /^Next fetch/);
});

test('a form differs by each of its fields', () => {
  const form = formOf(stored);
  assert.equal(sameForm(form, formOf(stored)), true);
  for (const change of [
    { title: 'x' },
    { address: 'x' },
    { format: 'html' as const },
    { text: 'x' },
    { refreshHours: 1 },
  ])
    assert.equal(sameForm(form, { ...form, ...change }), false, JSON.stringify(change));
});

test('an answer begins with the question', () => {
  assert.deepEqual(newForm(), { title: '', address: '', format: 'markdown', text: '', refreshHours: 0 });
  assert.deepEqual(newForm(' Can I return\n\ta parcel?\u0000'), {
    title: 'Can I return a parcel?',
    address: '',
    format: 'markdown',
    text: '## Can I return a parcel?\n\n',
    refreshHours: 0,
  });
});

test('a long question is a title that the API takes', () => {
  const question = `${'👋'.repeat(199)} and more`;
  const { title, text } = newForm(question);
  assert.equal(title, '👋'.repeat(199));
  assert.equal(text, `## ${question}\n\n`);
});

test('the form of an answer has an address', () => {
  const question = 'Is 100% of "A & B" #1 free? Really?';
  const { path, query } = parseRoute(answerHref(question));
  assert.equal(path, '/documents/new');
  assert.equal(query.get('question'), question);
});

test('a file sets the format, the title and the text', () => {
  assert.deepEqual(contentOfFile('Returns 2026.v2.md', utf8('# Grüße')), {
    format: 'markdown',
    title: 'Returns 2026.v2',
    text: '# Grüße',
  });
  const formats = { 'a.MARKDOWN': 'markdown', 'a.html': 'html', 'a.htm': 'html', 'a.TXT': 'text' };
  for (const [name, format] of Object.entries(formats))
    assert.deepEqual(contentOfFile(name, utf8('x')), { format, title: 'a', text: 'x' }, name);
  assert.equal(ACCEPTED, '.md,.markdown,.html,.htm,.txt,.pdf');
});

test('a byte order mark is no part of the text', () => {
  assert.deepEqual(contentOfFile('a.txt', utf8('\uFEFFx')), { format: 'text', title: 'a', text: 'x' });
});

test('a file that cannot be read has a problem', () => {
  const problemOf = (name: string, bytes: Uint8Array) => {
    const content = contentOfFile(name, bytes);
    return 'problem' in content ? content.problem : '';
  };
  assert.match(problemOf('a.pdf', utf8('x')), /ends in \.md/);
  assert.match(problemOf('readme', utf8('x')), /ends in \.md/);
  assert.equal(problemOf('a.txt', Uint8Array.of(0x47, 0xfc)), 'The file is not UTF-8 text.');
  assert.equal(problemOf('a.txt', new Uint8Array(MAX_TEXT + 1)), 'The file is larger than 512 kB.');
  assert.equal(problemOf('a.txt', new Uint8Array(MAX_TEXT)), '');
});

test('a passage stands below its headings', () => {
  assert.equal(placeOf({ title: 'Shop', heading: 'Orders › Returns' }), 'Shop › Orders › Returns');
  assert.equal(placeOf({ title: 'Shop', heading: '' }), 'Shop');
});
