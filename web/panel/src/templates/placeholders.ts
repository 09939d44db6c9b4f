import type { Parameter } from '../api/types.js';

type Part = { text: string } | { name: string };

/** Splits the text of a template into text and placeholders. Unclosed braces are text, as on the server. */
export function partsOf(text: string): Part[] {
  const parts: Part[] = [];
  let rest = text;
  for (;;) {
    const open = rest.indexOf('{{');
    if (open < 0) return rest ? [...parts, { text: rest }] : parts;
    if (open > 0) parts.push({ text: rest.slice(0, open) });
    const end = rest.indexOf('}}', open + 2);
    if (end < 0) return [...parts, { text: rest.slice(open) }];
    parts.push({ name: rest.slice(open + 2, end).trim() });
    rest = rest.slice(end + 2);
  }
}

/** Returns the distinct names of the placeholders, in order of first appearance. */
export const placeholders = (text: string): string[] => [
  ...new Set(partsOf(text).flatMap((p) => ('name' in p && p.name ? [p.name] : []))),
];

/** Replaces the placeholders with the values, or with the defaults of the parameters. */
export function renderTemplate(t: { text: string; parameters: Parameter[] }, values: Record<string, string>): string {
  const defaults = Object.fromEntries(t.parameters.map((p) => [p.name, p.default]));
  return partsOf(t.text)
    .map((p) => ('text' in p ? p.text : values[p.name] || defaults[p.name] || ''))
    .join('');
}
