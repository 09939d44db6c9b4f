// Bundles the TypeScript unit tests and runs them with node:test.

import { build } from 'esbuild';
import { spawnSync } from 'node:child_process';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const out = await mkdtemp(join(here, '.test-'));
try {
  const tests = (await readdir(join(here, 'test')))
    .filter((f) => f.endsWith('.test.ts') || f.endsWith('.test.tsx'))
    .map((f) => join(here, 'test', f));
  const codes = (await readdir(join(here, 'src/i18n'))).map((f) => f.replace('.ts', '')).filter((c) => c !== 'strings');
  await build({
    entryPoints: tests,
    bundle: true,
    platform: 'node',
    format: 'esm',
    outdir: out,
    outExtension: { '.js': '.mjs' },
    jsx: 'automatic',
    jsxImportSource: 'preact',
    loader: { '.css': 'text' },
    external: ['socket.io-parser'], // its Node.js build cannot be bundled
    plugins: [
      {
        name: 'languages',
        setup(b) {
          b.onResolve({ filter: /^languages$/ }, () => ({ path: 'languages', namespace: 'table' }));
          b.onLoad({ filter: /.*/, namespace: 'table' }, () => ({
            contents: `export default {${codes.map((c) => `${c}:()=>import('./i18n/${c}.ts')`)}}`,
            resolveDir: join(here, 'src'),
          }));
        },
      },
    ],
  });
  const { status } = spawnSync(process.execPath, ['--test', out], { stdio: 'inherit' });
  process.exitCode = status ?? 1;
} finally {
  await rm(out, { recursive: true });
}
