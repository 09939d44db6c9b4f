import type { Data } from '@parley/shared/message.js';
import { formatNumber } from '../lib/format.js';
import { strings } from '../strings.js';

export interface Difference {
  path: string;
  before?: string;
  after?: string;
}

const isDigest = (v: unknown): v is { bytes: number; sha256: string } =>
  isObject(v) && Object.keys(v).length === 2 && typeof v.bytes === 'number' && typeof v.sha256 === 'string';

const write = (v: unknown): string => {
  if (isDigest(v)) return strings.audit.large(formatNumber(v.bytes), v.sha256.slice(0, 12)); // too large for an entry
  return typeof v === 'string' ? v : JSON.stringify(v);
};

const isObject = (v: unknown): v is Data => v !== null && typeof v === 'object' && !Array.isArray(v);

/** Returns the differences between two states, by path. */
export function differences(before: Data | undefined, after: Data | undefined, prefix = ''): Difference[] {
  const found: Difference[] = [];
  for (const key of new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])) {
    const [a, b] = [before?.[key], after?.[key]];
    const path = prefix ? `${prefix}.${key}` : key;
    if (isObject(a) && isObject(b) && !isDigest(a) && !isDigest(b)) found.push(...differences(a, b, path));
    else if (JSON.stringify(a) !== JSON.stringify(b))
      found.push({ path, ...(a !== undefined && { before: write(a) }), ...(b !== undefined && { after: write(b) }) });
  }
  return found;
}
