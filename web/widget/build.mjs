// Builds the widget into services/widget-api/internal/web/dist, where widget-api embeds it:
//
//   widget.js             the loader, referenced by the script tag
//   widget/<name>-<hash>.js   everything else, immutable: the chat, the languages, and what is loaded on demand
//   *.br, *.gz            compressed copies
//   manifest.json         sizes and integrity hash of each file
//
// The build fails if the loader, the total, or what is loaded on demand (extras, markdown) exceed their size budgets.

import { build, transform } from 'esbuild';
import { createHash } from 'node:crypto';
import { mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants } from 'node:zlib';
import { gzipAsync } from '@gfx/zopfli';
import { names as clients, slim } from './client.mjs';
import { mangleProps } from './mangle.mjs';

const KB = 1024;
/**
 * Bytes of gzip. `everything` was 45 KB until the session became parts with narrow interfaces: their classes and the
 * objects that connect them took 1,300 bytes more, of which shorter names and modules of socket.io-client gave back
 * 450.
 */
const budgets = { loader: 3 * KB, everything: 46 * KB, extras: 3 * KB, markdown: 3 * KB };

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, '../..');
const dist = join(root, 'services/widget-api/internal/web/dist');

/** Imports style sheets as minified text. */
const styles = {
  name: 'styles',
  setup(b) {
    b.onLoad({ filter: /\.css$/ }, async ({ path }) => {
      const { code } = await transform(await readFile(path, 'utf8'), { loader: 'css', minify: true, target: 'es2022' });
      return { contents: code, loader: 'text' };
    });
  },
};

/** Generates the module "languages", which maps each code to a dynamic import. */
const languageTable = (codes, hash) => ({
  name: 'languages',
  setup(b) {
    b.onResolve({ filter: /^languages$/ }, () => ({ path: 'languages', namespace: 'table' }));
    b.onLoad({ filter: /.*/, namespace: 'table' }, () => ({
      contents: `export default Object.fromEntries('${codes.join(' ')}'.split(' ').map(code=>[code,(file='./'+code+'-${hash}.js')=>import(file)]))`,
    }));
  },
});

const languageCodes = async () =>
  (await readdir(join(here, 'src/i18n')))
    .map((f) => basename(f, '.ts'))
    .filter((n) => n !== 'strings')
    .sort();

const common = {
  absWorkingDir: here,
  bundle: true,
  minify: true,
  write: false,
  metafile: true,
  target: ['es2022'],
  charset: 'utf8',
  legalComments: 'none',
  define: { 'process.env.NODE_ENV': '"production"' },
  jsx: 'automatic',
  jsxImportSource: 'preact',
  logLevel: 'warning',
  plugins: [styles, slim],
};

const integrity = (bytes) => 'sha256-' + createHash('sha256').update(bytes).digest('base64');

const hashOf = (...bytes) =>
  bytes
    .reduce((hash, b) => hash.update(b), createHash('sha256'))
    .digest('hex')
    .slice(0, 8);

const hashed = (name, bytes) => `widget/${name}-${hashOf(bytes)}.js`;

/**
 * The texts and files of all languages. The file names share one hash, so that the loader can compute the name of the
 * visitor's language.
 */
async function languages() {
  const texts = {},
    bytes = {};
  for (const code of await languageCodes()) {
    const {
      outputFiles: [{ contents }],
    } = await build({ ...common, entryPoints: [`src/i18n/${code}.ts`], format: 'esm' });
    texts[code] = (await import('data:text/javascript;base64,' + Buffer.from(contents).toString('base64'))).default;
    bytes[code] = contents;
  }
  const hash = hashOf(...Object.values(bytes));
  return {
    texts,
    hash,
    files: new Map(Object.entries(bytes).map(([code, contents]) => [`widget/${code}-${hash}.js`, contents])),
  };
}

/** Modules that the chat loads on demand: src/<name>.ts. */
const lazy = ['extras', 'markdown'];

/** Exports that the chat provides to them (src/ui/ondemand.ts). */
const shared = 'Fragment jsx jsxs ApiError text useEffect useRef useState Icon useScreen Link Linked safeLink'.split(
  ' ',
);

/**
 * Resolves the modules that they share with the chat to a stub "chat", whose exports the chat sets through `provide`.
 */
const fromChat = {
  name: 'fromChat',
  setup(b) {
    b.onResolve(
      {
        filter:
          /^(chat|preact\/jsx-runtime|\.\/co(ntext|ntent)\.js|\.\/url\.js|@parley\/shared\/(api|message|render\/(hooks|icon))\.js)$/,
      },
      () => ({ path: 'chat', namespace: 'chat' }),
    );
    b.onLoad({ filter: /.*/, namespace: 'chat' }, () => ({
      contents: `export let ${shared}; export const provide = (given) => { ({ ${shared} } = given) }`,
    }));
  },
};

/**
 * Builds a module that the chat loads on demand. `mangleCache` is that of the chat, so that both use the same mangled
 * names.
 */
async function onDemand(name, mangleCache) {
  const result = await build({
    ...common,
    entryPoints: [`src/${name}.ts`],
    format: 'esm',
    mangleProps,
    mangleCache,
    plugins: [...common.plugins, fromChat],
  });
  return result.outputFiles[0].contents;
}

/**
 * Builds the chat: everything except the loader, the languages and what is loaded on demand, the bytes of which are
 * given by file.
 */
async function chat(codes, hash, mangleCache, later = new Map(lazy.map((name) => [name, '']))) {
  const define = { ...common.define };
  [...later].forEach(([file, bytes], i) => {
    const name = lazy[i].toUpperCase();
    define[`__${name}__`] = JSON.stringify(file);
    define[`__${name}_INTEGRITY__`] = JSON.stringify(integrity(bytes));
  });
  const result = await build({
    ...common,
    entryPoints: ['src/chat.tsx'],
    format: 'esm',
    mangleProps,
    mangleCache,
    plugins: [...common.plugins, languageTable(codes, hash)],
    define,
  });
  const { contents, text } = result.outputFiles[0];
  const quoted = clients.filter((name) => new RegExp(`\\.${name}\\b`).test(text));
  if (quoted.length)
    throw new Error(
      `socket.io-client also uses these property names as strings, so they cannot be mangled: ${quoted.join(' ')}`,
    );
  return { bytes: contents, inputs: Object.keys(result.metafile.inputs), names: result.mangleCache };
}

async function loader(chatFile, chatBytes, texts, languageHash) {
  const result = await build({
    ...common,
    entryPoints: ['src/loader.ts'],
    format: 'iife',
    define: {
      ...common.define,
      __CHAT__: JSON.stringify(chatFile),
      __INTEGRITY__: JSON.stringify(integrity(chatBytes)),
      __LANGUAGES__: JSON.stringify(languageHash),
      __LABELS__: JSON.stringify(Object.fromEntries(Object.entries(texts).map(([code, t]) => [code, t.open]))),
    },
  });
  return result.outputFiles[0].contents;
}

/** Concatenates the licences of the bundled packages. */
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

async function main() {
  const { texts, hash, files } = await languages();
  const languageFiles = [...files.keys()];
  const codes = Object.keys(texts);
  const { names } = await chat(codes, hash, {}); // first pass: only to compute the mangled names
  const later = new Map();
  for (const name of lazy) {
    const contents = await onDemand(name, names);
    later.set(hashed(name, contents), contents);
  }
  for (const [file, contents] of later) files.set(file, contents);
  const { bytes: chatBytes, inputs } = await chat(codes, hash, names, later);
  const chatFile = hashed('chat', chatBytes);
  files.set(chatFile, chatBytes);
  const bytes = await loader(chatFile, chatBytes, texts, hash);
  files.set('widget.js', bytes);
  files.set(hashed('loader', bytes), bytes); // for pages that pin a version
  files.set('widget/licenses.txt', await licences(inputs));

  for (const name of await readdir(dist).catch(() => []))
    if (name !== '.gitignore') await rm(join(dist, name), { recursive: true });
  await mkdir(join(dist, 'widget'), { recursive: true });
  const manifest = {};
  for (const [name, contents] of [...files].sort()) {
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

  const gz = (file) => manifest[file].gzip;
  const language = Math.max(...languageFiles.map(gz)); // a visitor loads one language
  const sizes = {
    loader: gz('widget.js'),
    everything: gz('widget.js') + gz(chatFile) + language,
  };
  [...later.keys()].forEach((file, i) => (sizes[lazy[i]] = gz(file)));
  for (const [name, size] of Object.entries(sizes)) {
    console.log(`widget ${name}: ${size} bytes gzip, budget ${budgets[name]}`);
    if (size > budgets[name]) {
      console.error(`widget ${name} exceeds its budget`);
      process.exitCode = 1;
    }
  }
}

await main();
