import assert from 'node:assert/strict';
import { test } from 'node:test';
import { contrast, parseHex, readable, toHex } from '@parley/shared/colour.js';
import { buttonsOf, readMessage, summary } from '@parley/shared/message.js';
import { Content, type Render } from '@parley/shared/render/content.js';
import { drawSvg } from '@parley/shared/render/picture.js';
import { isFromOrigins, linkify, safeLink, telLink } from '@parley/shared/url.js';
import { load } from '../package/index.js';
import { palette } from '../src/ui/theme.js';

test('only safe URLs become links', () => {
  for (const url of [
    'javascript:alert(1)',
    'data:text/html,x',
    ' vbscript:x',
    'https://user:pass@bank.example',
    'file:///etc/passwd',
    '',
  ])
    assert.equal(safeLink(url), undefined, url);
  assert.equal(safeLink('HTTPS://Example.com/a b'), 'https://example.com/a%20b');
  assert.equal(telLink('+98 (21) 123-45'), 'tel:+982112345');
  assert.equal(telLink('1;ext=javascript:'), undefined);
  assert.ok(
    isFromOrigins('https://chat.example/f', ['https://chat.example']) &&
      !isFromOrigins('https://chat.example.evil/f', ['https://chat.example']),
  );
});

test('finds links in a text without trailing punctuation', () => {
  const found = linkify('See https://a.example/x(1), or (https://b.example/y). Mail me@c.example!')
    .filter((p) => p.href)
    .map((p) => p.href);
  assert.deepEqual(found, ['https://a.example/x(1)', 'https://b.example/y', 'mailto:me@c.example']);
  const evil = '<img src=x onerror=alert(1)>';
  assert.deepEqual(linkify(evil), [{ text: evil }]);
});

test('renders an SVG data: URL without elements outside the allowlist', () => {
  const svg = (inside: string) =>
    'data:image/svg+xml,' +
    encodeURIComponent(`<svg viewBox="0 0 9 9" onload="alert(1)"><script>alert(2)</script>${inside}</svg>`);
  const drawn =
    JSON.stringify(
      drawSvg(
        svg(
          '<circle r="4" fill="#fff" onclick="x()"/><image href="https://third.example/x"/><path d="M0 0" fill="url(https://third.example)"/>',
        ),
        '',
      ),
    ) ?? '';
  assert.match(drawn, /circle/);
  assert.match(drawn, /path/);
  assert.doesNotMatch(drawn, /alert|script|image|third|onclick|onload/);
});

test('raises insufficient text contrast and keeps sufficient colours', () => {
  assert.equal(toHex(readable(parseHex('#ffffff')!, [parseHex('#0f766e')!])), '#ffffff');
  for (const [front, back] of [
    ['#ffffff', '#ffee00'],
    ['#777777', '#808080'],
    ['#000000', '#111111'],
    ['#0000ff', '#ff0000'],
  ] as const) {
    const c = readable(parseHex(front)!, [parseHex(back)!]);
    assert.ok(contrast(c, parseHex(back)!) >= 4.5, `${front} on ${back} became ${toHex(c)}`);
  }
  const bad = Object.fromEntries(
    [
      'primaryBackgroundColor',
      'primaryTextColor',
      'inputTextColor',
      'inputBackgroundColor',
      'footerBackgroundColor',
      'contentBackgroundColor',
      'sentMessageBubbleBgColor',
      'sentMessageBubbleTextColor',
      'receivedMessageBubbleBgColor',
      'receivedMessageBubbleTextColor',
      'formBackgroundColor',
    ].map((key) => [key, '#ffe500']),
  );
  for (const dark of [false, true]) {
    const p = palette(bad, dark);
    for (const [front, back] of [
      ['primary-ink', 'primary'],
      ['input-ink', 'input'],
      ['sent-ink', 'sent'],
      ['received-ink', 'received'],
      ['ink', 'content'],
      ['faint', 'content'],
      ['accent', 'content'],
      ['accent-received', 'received'],
      ['received-faint', 'received'],
      ['bad', 'form'],
    ]) {
      const ratio = contrast(parseHex(p[`--${front}`])!, parseHex(p[`--${back}`])!);
      assert.ok(ratio >= 4.5, `${front} on ${back}, dark ${dark}: ${ratio}`);
    }
  }
});

test('reads message records with missing or invalid fields', () => {
  assert.equal(readMessage({}), undefined);
  const m = readMessage({ id: 'x', createdAt: 'yesterday', data: [1], type: 7, isFromSupport: 'true' });
  assert.deepEqual([m?.type, m?.data, m?.isFromSupport], ['7', {}, false]);
  assert.deepEqual(
    buttonsOf({ buttons: [null, { title: 'A', payload: 'a' }, { type: 'url', url: 'https://x.example' }] }).map(
      (b) => b.kind,
    ),
    ['reply', 'url'],
  );
});

test('the npm package does nothing without a DOM', async () => {
  const parley = load({ baseUrl: 'https://chat.example', appId: 'a' });
  parley.open();
  parley.on('message', () => assert.fail());
  parley.destroy();
  assert.equal(typeof (globalThis as { window?: unknown }).window, 'undefined');
});

test('an answer that was cut is marked', () => {
  const render = { t: (key: string) => `[${key}]`, origins: [] as string[], base: '' } as unknown as Render;
  const shown = (data: Record<string, unknown>) =>
    JSON.stringify(Content({ message: readMessage({ id: '1', type: 'TEXT', data })!, render, reachable: true }));
  for (const finishReason of ['stopped', 'interrupted', 'length'])
    assert.match(shown({ text: 'Half', finishReason }), /\[cut\]/);
  assert.doesNotMatch(shown({ text: 'Whole' }), /\[cut\]/);
});

test('a summary is what a person reads of a message', () => {
  const said = (type: string, data: Record<string, unknown>) =>
    summary(readMessage({ id: '1', type, data })!, (kind) => `[${kind}]`);
  assert.equal(said('MULTIPLE_CHOICE', { text: 'Which?', choices: [{ title: 'A' }] }), 'Which?');
  assert.equal(said('INTERACTIVE', { header: 'Order', body: { text: 'Ready' } }), 'Order. Ready');
  assert.equal(said('CAROUSEL', { cards: [{ title: 'Blue' }, { title: 'Red' }] }), 'Blue, Red');
  assert.equal(said('IMAGE', { url: 'https://x.example/a', caption: 'A cat' }), '[picture]: A cat');
  assert.equal(said('FILE', { url: 'https://x.example/a' }), '[file]');
});
