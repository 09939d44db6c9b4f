// Builds the panel's app into services/panel/internal/web/dist, which the panel service embeds:
//
//   index.html, preview.html      the pages
//   assets/<name>-<hash>.js, .css immutable assets
//   widget.js, widget/            the widget as built by web/widget, for the preview
//   *.br, *.gz                    compressed copies
//   manifest.json                 size and integrity of each file
//
// Each section is a separate chunk. The build fails when the script of the first page plus the largest section exceeds the budget.

import { build } from 'esbuild';
import { createHash } from 'node:crypto';
import { mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants } from 'node:zlib';
import { gzipAsync } from '@gfx/zopfli';

const budget = 120 * 1024;

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, '../..');
const dist = join(root, 'services/panel/internal/web/dist');

const widget = join(root, 'services/widget-api/internal/web/dist');

const integrity = (bytes) => 'sha256-' + createHash('sha256').update(bytes).digest('base64');

/** Returns the licences of all bundled packages as one text. */
async function licences(inputs) {
  const names = new Set(inputs.map((i) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(i)?.[1]).filter(Boolean));
  const texts = [];
  for (const name of [...names].sort()) {
    const folder = join(root, 'node_modules', name);
    const file = (await readdir(folder)).find((f) => /^licen[cs]e/i.test(f));
    const { version, license } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
    texts.push(
      `${name} ${version} (${license})\n\n${file ? (await readFile(join(folder, file), 'utf8')).trim() : ''}\n`,
    );
  }
  return Buffer.from(texts.join('\n----\n\n'));
}

/** Returns the script files that an entry needs: the entry and its transitive static imports. */
function closure(outputs, entry, found = new Set()) {
  if (found.has(entry)) return found;
  found.add(entry);
  for (const { path, kind } of outputs[entry].imports) if (kind === 'import-statement') closure(outputs, path, found);
  return found;
}

async function main() {
  const { outputFiles, metafile } = await build({
    absWorkingDir: here,
    bundle: true,
    splitting: true,
    format: 'esm',
    minify: true,
    write: false,
    metafile: true,
    outdir: 'out',
    entryPoints: {
      panel: 'src/main.tsx',
      style: 'src/styles/panel.css',
      preview: 'src/preview/preview.ts',
      'preview-style': 'src/preview/preview.css',
    },
    entryNames: 'assets/[name]-[hash]',
    chunkNames: 'assets/[name]-[hash]',
    target: ['es2022', 'chrome119', 'firefox120', 'safari16.4'],
    charset: 'utf8',
    legalComments: 'none',
    define: { 'process.env.NODE_ENV': '"production"' },
    jsx: 'automatic',
    jsxImportSource: 'preact',
    logLevel: 'warning',
  });
  const files = new Map(outputFiles.map((f) => [relative(join(here, 'out'), f.path), f.contents]));
  const outputOf = (source) =>
    Object.entries(metafile.outputs)
      .find(([, o]) => o.entryPoint === source)[0]
      .replace(/^out\//, '');
  const entry = outputOf('src/main.tsx');
  const staticImports = [...closure(metafile.outputs, 'out/' + entry)]
    .map((f) => f.replace(/^out\//, ''))
    .filter((f) => f !== entry);
  const fill = async (page, values) =>
    Buffer.from((await readFile(join(here, 'src', page), 'utf8')).replace(/\{\{(\w+)\}\}/g, (_, key) => values[key]));
  files.set(
    'index.html',
    await fill('index.html', {
      style: '/' + outputOf('src/styles/panel.css'),
      script: '/' + entry,
      preload: staticImports.map((f) => `<link rel="modulepreload" href="/${f}">`).join('\n    '),
    }),
  );
  files.set(
    'preview.html',
    await fill('preview/preview.html', {
      style: '/' + outputOf('src/preview/preview.css'),
      script: '/' + outputOf('src/preview/preview.ts'),
    }),
  );
  files.set('assets/licenses.txt', await licences(Object.keys(metafile.inputs)));

  // The preview only uses English.
  files.set('widget.js', await readFile(join(widget, 'widget.js')));
  for (const name of await readdir(join(widget, 'widget')))
    if (/^(chat|en)-[0-9a-f]+\.js$/.test(name))
      files.set(`widget/${name}`, await readFile(join(widget, 'widget', name)));

  for (const name of await readdir(dist).catch(() => []))
    if (name !== '.gitignore') await rm(join(dist, name), { recursive: true });
  for (const folder of ['assets', 'widget']) await mkdir(join(dist, folder), { recursive: true });
  const manifest = {};
  for (const [name, contents] of [...files].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const data = Buffer.from(contents);
    const gzip = await gzipAsync(data, { numiterations: 15 });
    const brotli = brotliCompressSync(data, {
      params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: data.length },
    });
    await Promise.all(
      [
        ['', data],
        ['.gz', gzip],
        ['.br', brotli],
      ].map(([end, d]) => writeFile(join(dist, name + end), d)),
    );
    manifest[name] = { bytes: data.length, gzip: gzip.length, brotli: brotli.length, integrity: integrity(data) };
  }
  await writeFile(join(dist, 'manifest.json'), JSON.stringify(manifest, null, 2) + '\n');

  const gzipSize = (names) => [...names].reduce((sum, f) => sum + manifest[f.replace(/^out\//, '')].gzip, 0);
  const first = closure(metafile.outputs, 'out/' + entry);
  const sections = [...first].flatMap((f) => metafile.outputs[f].imports).filter((i) => i.kind === 'dynamic-import');
  const sizes = sections.map(({ path }) => gzipSize(closure(metafile.outputs, path, new Set(first))));
  const size = Math.max(gzipSize(first), ...sizes);
  console.log(`panel first page: ${size} bytes gzip of script, budget ${budget}; the shell alone ${gzipSize(first)}`);
  if (size > budget) {
    console.error('the first page exceeds its budget');
    process.exitCode = 1;
  }
}

await main();
