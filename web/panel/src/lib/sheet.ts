import { useEffect, useMemo } from 'preact/hooks';

let next = 0;

/** A CSS rule with properties that are computed at run time. It replaces the style attribute, which the Content-Security-Policy forbids. */
export class Rule {
  readonly name = `rule-${next++}`;
  readonly #sheet = new CSSStyleSheet();

  constructor() {
    this.#sheet.replaceSync(`.${this.name}{}`);
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, this.#sheet];
  }

  set(property: string, value: string): void {
    const { style } = this.#sheet.cssRules[0] as CSSStyleRule;
    if (style.getPropertyValue(property) !== value) style.setProperty(property, value);
  }

  remove(): void {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((s) => s !== this.#sheet);
  }
}

/** Returns the class name of a rule with these properties. */
export function useRule(properties: Record<string, string>): string {
  const rule = useMemo(() => new Rule(), []);
  useEffect(() => () => rule.remove(), []);
  for (const [key, value] of Object.entries(properties)) rule.set(key, value);
  return rule.name;
}
