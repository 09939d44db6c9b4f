/** Colours and their contrast (WCAG 2.2, "relative luminance" and "contrast ratio"). */
export type Rgb = [number, number, number];

/** Reads #rgb, #rgba, #rrggbb and #rrggbbaa; alpha is dropped. */
export function parseHex(value: unknown): Rgb | undefined {
  if (typeof value !== 'string') return undefined;
  const hex = value.trim().replace(/^#/, '');
  if (!/^(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})$/i.test(hex)) return undefined;
  const size = hex.length < 6 ? 1 : 2;
  const at = (i: number) => parseInt(hex.slice(i * size, i * size + size).repeat(3 - size), 16);
  return [at(0), at(1), at(2)];
}

export const toHex = (c: Rgb): string => `#${c.map((v) => Math.round(v).toString(16).padStart(2, '0')).join('')}`;

export function luminance(c: Rgb): number {
  const [r, g, b] = c.map((v) => {
    const s = v / 255;
    return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
  }) as Rgb;
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

export function contrast(a: Rgb, b: Rgb): number {
  const [x, y] = [luminance(a), luminance(b)];
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}

/** Mixes a share of b, from 0 to 1, into a. */
export const mix = (a: Rgb, b: Rgb, share: number): Rgb => a.map((v, i) => v + (b[i]! - v) * share) as Rgb;

export const WHITE: Rgb = [255, 255, 255];
export const BLACK: Rgb = [0, 0, 0];

/**
 * Mixes black or white into foreground until its contrast with every background reaches the ratio. Returns the nearest such colour, else
 * black or white.
 */
export function readable(foreground: Rgb, backgrounds: Rgb[], ratio = 4.5): Rgb {
  const sufficient = (c: Rgb) => backgrounds.every((b) => contrast(parseHex(toHex(c))!, b) >= ratio);
  for (let share = 0; share <= 1; share += 0.05) {
    for (const end of luminance(backgrounds[0]!) > 0.18 ? [BLACK, WHITE] : [WHITE, BLACK]) {
      const c = mix(foreground, end, share);
      if (sufficient(c)) return c;
    }
  }
  return contrast(WHITE, backgrounds[0]!) >= contrast(BLACK, backgrounds[0]!) ? WHITE : BLACK;
}
