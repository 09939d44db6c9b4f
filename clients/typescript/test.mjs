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
    .filter((f) => /\.test\.ts$/.test(f))
    .map((f) => join(here, 'test', f));
  await build({
    entryPoints: tests,
    bundle: true,
    platform: 'node',
    format: 'esm',
    outdir: out,
    outExtension: { '.js': '.mjs' },
  });
  const { status } = spawnSync(process.execPath, ['--test', out], { stdio: 'inherit' });
  process.exitCode = status ?? 1;
} finally {
  await rm(out, { recursive: true });
}
