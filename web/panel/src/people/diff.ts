import type { Data } from '@parley/shared/message.js';

export interface Difference {
  path: string;
  before?: string;
  after?: string;
}

const write = (v: unknown): string => (typeof v === 'string' ? v : JSON.stringify(v));

const isObject = (v: unknown): v is Data => v !== null && typeof v === 'object' && !Array.isArray(v);

/** Returns the differences between two states, by path. */
export function differences(before: Data | undefined, after: Data | undefined, prefix = ''): Difference[] {
  const found: Difference[] = [];
  for (const key of new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])) {
    const [a, b] = [before?.[key], after?.[key]];
    const path = prefix ? `${prefix}.${key}` : key;
    if (isObject(a) && isObject(b)) found.push(...differences(a, b, path));
    else if (JSON.stringify(a) !== JSON.stringify(b))
      found.push({ path, ...(a !== undefined && { before: write(a) }), ...(b !== undefined && { after: write(b) }) });
  }
  return found;
}
