/**
 * A style sheet with one rule for custom properties set at runtime. It avoids style attributes, which a CSP may forbid.
 */
export class Sheet {
  readonly sheet = new CSSStyleSheet();

  constructor() {
    this.sheet.replaceSync('.p{}');
  }

  set(property: string, value: string): void {
    const { style } = this.sheet.cssRules[0] as CSSStyleRule;
    if (style.getPropertyValue(property) !== value) style.setProperty(property, value);
  }
}
