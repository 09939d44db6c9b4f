import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse, plainText, withoutMarks, type Child } from '@parley/shared/markdown.js';
import { readMessage } from '@parley/shared/message.js';
import { Content, type Render } from '@parley/shared/render/content.js';
import { Markdown } from '@parley/shared/render/markdown.js';

/** The nodes of a text in the notation of HTML, which is easy to compare. */
const drawn = (source: string, unfinished = false): string => parse(source, unfinished).map(outline).join('');

function outline(child: Child): string {
  if (typeof child === 'string') return child.replace(/</g, '&lt;');
  const { tag, href, start } = child;
  const attribute = href ? ` ${href}` : start === undefined || start === 1 ? '' : ` ${start}`;
  return `<${tag}${attribute}>${child.children.map(outline).join('')}</${tag}>`;
}

const same = (cases: [source: string, want: string][], unfinished = false) => {
  for (const [source, want] of cases) assert.equal(drawn(source, unfinished), want, JSON.stringify(source));
};

test('inlines: emphasis, code and links; everything else is text', () => {
  same([
    ['**Bold**, *thin* and ~~gone~~', '<p><strong>Bold</strong>, <em>thin</em> and <s>gone</s></p>'],
    ['***both*** **a *b* c**', '<p><strong><em>both</em></strong> <strong>a <em>b</em> c</strong></p>'],
    ['这是**重点：**内容', '<p>这是<strong>重点：</strong>内容</p>'],
    ['5 * 3 * 2, 2*3*4, snake_case_name, a ** b, **', '<p>5 * 3 * 2, 2*3*4, snake_case_name, a ** b, **</p>'],
    ['\\*not\\* `**code**` ``a ` b``', '<p>*not* <code>**code**</code> <code>a ` b</code></p>'],
    ['one ` tick, **open *and* [left', '<p>one ` tick, **open <em>and</em> [left</p>'],
    [
      '[our **shop**](https://a.example/x_(y) "Title")!',
      '<p><a https://a.example/x_(y)>our <strong>shop</strong></a>!</p>',
    ],
    ['![A cat](https://a.example/cat.png)', '<p><a https://a.example/cat.png>A cat</a></p>'],
    ['https://a.example/_x_/b_c_', '<p>https://a.example/_x_/b_c_</p>'],
    ['[a [b](https://b.example) c](https://c.example)', '<p>[a <a https://b.example/>b</a> c](https://c.example)</p>'],
    ['first\nsecond  \n\nthird', '<p>first\nsecond</p><p>third</p>'],
  ]);
});

test('a link leads to http or https, and HTML is text', () => {
  for (const source of [
    '[x](javascript:alert(1))',
    '[x](data:text/html,y)',
    '[x](//evil.example)',
    '[x](https://user:pass@bank.example)',
    '[x]()',
  ])
    assert.equal(drawn(source), `<p>${source}</p>`);
  assert.equal(drawn('<img src=x onerror=alert(1)>'), '<p>&lt;img src=x onerror=alert(1)></p>');
});

test('blocks: fences, lists, quotes, headings, rules and tables', () => {
  same([
    ['Run:\n```sh\nnpm i  # **no**\n\n  x\n```\nDone', '<p>Run:</p><pre>npm i  # **no**\n\n  x</pre><p>Done</p>'],
    ['~~~\n```\n~~~', '<pre>```</pre>'],
    ['## The *C#* way', '<p><strong>The <em>C#</em> way</strong></p>'],
    [
      'a\n\n---\n> quoted\n> - item',
      '<p>a</p><hr></hr><blockquote><p>quoted</p><ul><li><p>item</p></li></ul></blockquote>',
    ],
    ['|a|b|\n|-|-|\n|1|2|', '<pre>|a|b|\n|-|-|\n|1|2|</pre>'],
    [
      'Shops:\n- **Berlin**\n  - Mitte\n- Paris',
      '<p>Shops:</p><ul><li><p><strong>Berlin</strong></p><ul><li><p>Mitte</p></li></ul></li><li><p>Paris</p></li></ul>',
    ],
    [
      '3. One\n\n   more\n\n   ```\n   code\n   ```\n4) Two\n\nEnd',
      '<ol 3><li><p>One</p><p>more</p><pre>code</pre></li><li><p>Two</p></li></ol><p>End</p>',
    ],
    ['It was in\n2025. A good year.', '<p>It was in\n2025. A good year.</p>'],
  ]);
});

test('an unfinished text is shown as if it ended here', () => {
  same(
    [
      ['Some **bo', '<p>Some <strong>bo</strong></p>'],
      ['Some **', '<p>Some</p>'],
      ['**a** and `cod', '<p><strong>a</strong> and <code>cod</code></p>'],
      ['See [our shop](https://shop.exa', '<p>See our shop</p>'],
      ['See [our sh', '<p>See our sh</p>'],
      ['**open\n\nnext *it', '<p>**open</p><p>next <em>it</em></p>'],
      ['Run\n```sh\nnpm', '<p>Run</p><pre>npm</pre>'],
      ['- one\n- **tw', '<ul><li><p>one</p></li><li><p><strong>tw</strong></p></li></ul>'],
      ['One\n- ', '<p>One</p>'],
    ],
    true,
  );
  const answer = '## Hi\n1. **a** `b`\n   > [c](https://d.example) *e\n```\nf\n```\n| g | ~~h~~\n';
  for (let n = 0; n <= answer.length; n++) assert.ok(Array.isArray(parse(answer.slice(0, n), true)));
});

test('parsing is linear in a hostile text, and bounded in depth', () => {
  const n = 100_000;
  const depth = (c: Child): number => (typeof c === 'string' ? 0 : 1 + Math.max(0, ...c.children.map(depth)));
  const began = performance.now();
  for (const unit of [
    '*',
    '_',
    '*a ',
    '**a *b ',
    '~~a ',
    '[',
    ']',
    '[a](',
    '![](',
    '[](a "',
    '[a](b)',
    '`a``',
    '> ',
    '>\n',
    '- ',
    '- a\n\n',
    '|\n',
    '#\u2028 ',
    '\\',
    '```\n',
    'https://a',
    ' \n',
  ]) {
    for (const source of [
      unit.repeat(n / unit.length),
      `${unit.repeat(n / unit.length)}x`,
      `# ${' '.repeat(n)}${unit}x`,
    ])
      for (const unfinished of [false, true]) assert.ok(Math.max(0, ...parse(source, unfinished).map(depth)) < 64);
  }
  const nested = Array.from({ length: 1000 }, (_, i) => `${'  '.repeat(i)}- a`).join('\n');
  const ticks = Array.from({ length: 400 }, (_, i) => '`'.repeat(i + 1)).join(' ');
  for (const source of [nested, ticks, '> - '.repeat(1000) + 'a']) parse(source);
  const took = performance.now() - began;
  assert.ok(took < 20_000, `took ${took} ms; a quadratic parser takes minutes`);
});

test('one line of a text has no marks', () => {
  assert.equal(plainText('## Hi\n- **a** [b](https://c.example)\n- `d`'), 'Hi\na b\nd');
  const said = (data: object, more = {}) =>
    withoutMarks(readMessage({ id: '1', type: 'TEXT', data, isFromSupport: true, ...more })!).data.text;
  assert.equal(said({ text: '**a**', format: 'markdown' }), 'a');
  for (const format of ['plain', 'html', undefined]) assert.equal(said({ text: '**a**', format }), '**a**');
  assert.equal(said({ text: '**a**', format: 'markdown' }, { isFromSupport: false }), '**a**', 'of a visitor');
});

test('a message is Markdown where its data says so, once that is loaded', () => {
  const shown = (data: object, markdown: Render['markdown'], isFromSupport = true) => {
    const render = { t: (key: string) => key, origins: [] as string[], base: '', markdown } as unknown as Render;
    const message = readMessage({ id: '1', type: 'TEXT', data, isFromSupport })!;
    const words = (
      Content({ message, render, reachable: true }).props.children as {
        type: (props: object) => unknown;
        props: object;
      }[]
    )[0]!;
    return (words.type(words.props) as { type: { name: string } }).type;
  };
  const data = { text: '**a**', format: 'markdown' };
  assert.equal(
    shown(data, () => Markdown),
    Markdown,
  );
  assert.notEqual(
    shown(data, () => undefined),
    Markdown,
  );
  const never = () => assert.fail('is not loaded for plain texts');
  assert.notEqual(shown({ text: '**a**', format: 'plain' }, never), Markdown);
  assert.notEqual(shown({ text: '**a**' }, never), Markdown);
  assert.notEqual(shown(data, never, false), Markdown);
});
