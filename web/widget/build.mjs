// Builds the widget into services/widget-api/internal/web/dist, where widget-api embeds it:
//
//   widget.js             the loader: what the script tag names
//   widget/<name>-<hash>.js   everything else, immutable
//   *.br, *.gz            the same, compressed
//   manifest.json         sizes and integrity of each file
//
// The build fails when the loader or the whole is heavier than its budget.

import { build, transform } from 'esbuild';
import { createHash } from 'node:crypto';
import { mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants } from 'node:zlib';
import { gzipAsync } from '@gfx/zopfli';

const KB = 1024;
const budgets = { loader: 3 * KB, everything: 45 * KB };

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, '../..');
const dist = join(root, 'services/widget-api/internal/web/dist');
/** A transport that Parley's gateway does not speak. */
const noWebTransport = {
  name: 'no-webtransport',
  setup: (b) => b.onLoad({ filter: /engine\.io-client.*\/webtransport\.js$/ }, () => ({ contents: 'export class WT {}' })),
};

/** Style sheets are texts, minified. */
const styles = {
  name: 'styles',
  setup(b) {
    b.onLoad({ filter: /\.css$/ }, async ({ path }) => {
      const { code } = await transform(await readFile(path, 'utf8'), { loader: 'css', minify: true, target: 'es2022' });
      return { contents: code, loader: 'text' };
    });
  },
};

/** The module "languages": a table of the languages in src/i18n, each a file of its own. */
const languageTable = {
  name: 'languages',
  setup(b) {
    b.onResolve({ filter: /^languages$/ }, () => ({ path: 'languages', namespace: 'table' }));
    b.onLoad({ filter: /.*/, namespace: 'table' }, async () => ({
      contents: `export default {${(await languageCodes()).map((code) => `${code}:()=>import('./i18n/${code}.ts')`)}}`,
      resolveDir: join(here, 'src'),
    }));
  },
};

const languageCodes = async () => (await readdir(join(here, 'src/i18n'))).map((f) => basename(f, '.ts')).filter((n) => n !== 'strings').sort();

const common = {
  absWorkingDir: here, bundle: true, minify: true, write: false, metafile: true, target: ['es2022'], charset: 'utf8', legalComments: 'none',
  jsx: 'automatic', jsxImportSource: 'preact', define: { 'process.env.NODE_ENV': '"production"' },
  logLevel: 'warning', plugins: [styles, languageTable, noWebTransport],
};

const integrity = (bytes) => 'sha256-' + createHash('sha256').update(bytes).digest('base64');

/** Everything but the loader. Each language becomes a file of its own. */
async function chunks() {
  const result = await build({
    ...common, entryPoints: { chat: 'src/chat.tsx' }, format: 'esm', splitting: true, outdir: 'out/widget',
    entryNames: '[name]-[hash]', chunkNames: '[name]-[hash]',
  });
  const files = new Map(result.outputFiles.map((f) => [relative(join(here, 'out'), f.path), f.contents]));
  const outputs = Object.fromEntries(Object.entries(result.metafile.outputs).map(([path, o]) => [relative('out', path), o]));
  return { files, outputs, inputs: Object.keys(result.metafile.inputs) };
}

/** A file and what it imports statically. */
function closure(outputs, file, seen = new Set()) {
  if (seen.has(file)) return seen;
  seen.add(file);
  for (const i of outputs[file].imports) if (i.kind === 'import-statement') closure(outputs, relative('out', i.path), seen);
  return seen;
}

const entryOf = (outputs, source) => Object.keys(outputs).find((file) => outputs[file].entryPoint === source);

async function languages() {
  const all = {};
  for (const name of await languageCodes()) {
    const result = await build({ ...common, entryPoints: [`src/i18n/${name}.ts`], format: 'esm', minify: false });
    all[name] = (await import('data:text/javascript;base64,' + Buffer.from(result.outputFiles[0].contents).toString('base64'))).default;
  }
  return all;
}

async function loader(outputs, files, texts) {
  const chat = entryOf(outputs, 'src/chat.tsx');
  const wanted = [...closure(outputs, chat)];
  const result = await build({
    ...common, entryPoints: ['src/loader.ts'], format: 'iife', outdir: 'out',
    define: {
      ...common.define,
      __CHAT__: JSON.stringify(chat),
      __PRELOAD__: JSON.stringify(wanted.map((file) => [file, integrity(files.get(file))])),
      __LABELS__: JSON.stringify(Object.fromEntries(Object.entries(texts).map(([code, t]) => [code, t.open]))),
    },
  });
  return { bytes: result.outputFiles[0].contents, wanted };
}

/** The licences of what is bundled, in one text. */
async function licences(inputs) {
  const names = new Set(inputs.map((i) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(i)?.[1]).filter(Boolean));
  const texts = [];
  for (const name of [...names].sort()) {
    const folder = join(root, 'node_modules', name);
    const file = (await readdir(folder)).find((f) => /^licen[cs]e/i.test(f));
    const { version, license } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
    texts.push(`${name} ${version} (${license})\n\n${file ? (await readFile(join(folder, file), 'utf8')).trim() : ''}\n`);
  }
  return Buffer.from(texts.join('\n----\n\n'));
}

async function main() {
  const texts = await languages();
  const { files, outputs, inputs } = await chunks();
  const { bytes, wanted } = await loader(outputs, files, texts);
  files.set('widget.js', bytes);
  files.set(`widget/loader-${createHash('sha256').update(bytes).digest('hex').slice(0, 8)}.js`, bytes); // for pages that pin it
  files.set('widget/licenses.txt', await licences(inputs));

  for (const name of await readdir(dist).catch(() => [])) if (name !== '.gitignore') await rm(join(dist, name), { recursive: true });
  await mkdir(join(dist, 'widget'), { recursive: true });
  const manifest = {};
  for (const [name, contents] of [...files].sort()) {
    const data = Buffer.from(contents);
    const gzip = await gzipAsync(data, { numiterations: 15 });
    const brotli = brotliCompressSync(data, { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: data.length } });
    await Promise.all([['', data], ['.gz', gzip], ['.br', brotli]].map(([end, d]) => writeFile(join(dist, name + end), d)));
    manifest[name] = { bytes: data.length, gzip: gzip.length, brotli: brotli.length, integrity: integrity(data) };
  }
  await writeFile(join(dist, 'manifest.json'), JSON.stringify(manifest, null, 2) + '\n');

  const gz = (file) => manifest[file].gzip;
  const language = Math.max(0, ...Object.keys(texts).map((code) => entryOf(outputs, `src/i18n/${code}.ts`)).filter(Boolean).map(gz));
  const sizes = { loader: gz('widget.js'), everything: gz('widget.js') + wanted.reduce((sum, f) => sum + gz(f), 0) + language };
  for (const [name, size] of Object.entries(sizes)) {
    console.log(`widget ${name}: ${size} bytes gzip, budget ${budgets[name]}`);
    if (size > budgets[name]) {
      console.error(`the ${name} is over its budget`);
      process.exitCode = 1;
    }
  }
}

await main();
