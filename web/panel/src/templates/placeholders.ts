import type { Parameter } from '../api/types.js';

type Part = { text: string } | { name: string };

/** A template's text in its parts. Braces that do not close are text, as the server reads them. */
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

/** The names of the placeholders, each once, in their order. */
export const placeholders = (text: string): string[] => [...new Set(partsOf(text).flatMap((p) => ('name' in p && p.name ? [p.name] : [])))];

/** The text with values, or the parameters' defaults, in place of the placeholders. */
export function renderTemplate(t: { text: string; parameters: Parameter[] }, values: Record<string, string>): string {
  const defaults = Object.fromEntries(t.parameters.map((p) => [p.name, p.default]));
  return partsOf(t.text).map((p) => ('text' in p ? p.text : values[p.name] || defaults[p.name] || '')).join('');
}
