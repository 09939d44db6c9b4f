/** One rule whose properties change: sizes that only the running page knows. No element needs a style attribute. */
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
