import { BLACK, WHITE, contrast, luminance, mix, parseHex, readable, toHex, type Rgb } from '@parley/shared/colour.js';
import type { Data } from '@parley/shared/message.js';

const hex = (s: string): Rgb => parseHex(s)!;

export type Palette = Record<string, string>;

/** The configured colours as CSS custom properties. Text colours are adjusted until their contrast is sufficient. */
export function palette(configs: Data, dark: boolean): Palette {
  const pick = (key: string, otherwise: Rgb) => parseHex(configs[key]) ?? otherwise;
  const primary = pick('primaryBackgroundColor', hex('#0f766e'));
  // The dark theme has its own surface colours and keeps the site's accent colours.
  const surface = (key: string, light: string, night: string) =>
    dark ? mix(hex(night), primary, 0.04) : pick(key, hex(light));
  const content = surface('contentBackgroundColor', '#ffffff', '#15171c');
  const footer = surface('footerBackgroundColor', '#ffffff', '#1b1e24');
  const form = surface('formBackgroundColor', '#ffffff', '#1b1e24');
  const input = surface('inputBackgroundColor', '#ffffff', '#262a32');
  const received = surface('receivedMessageBubbleBgColor', '#eef0f3', '#2a2e37');
  const sent = pick('sentMessageBubbleBgColor', primary);
  const ink = dark ? hex('#f2f4f7') : hex('#16181d');
  const textOn = (key: string, back: Rgb) =>
    readable(dark && key !== 'sentMessageBubbleTextColor' && key !== 'primaryTextColor' ? ink : pick(key, ink), [back]);
  const faint = (...backs: Rgb[]) => readable(mix(ink, backs[0]!, 0.35), backs);
  const line = (back: Rgb) => mix(ink, back, 0.86);
  const unadjusted = { content, footer, form, input, received, sent, primary };
  return {
    ...Object.fromEntries(Object.entries(unadjusted).map(([name, c]) => [`--${name}`, toHex(c)])),
    '--primary-ink': toHex(readable(pick('primaryTextColor', WHITE), [primary])),
    '--primary-deep': toHex(headerShade(primary, pick('primaryTextColor', WHITE))),
    '--input-ink': toHex(textOn('inputTextColor', input)),
    '--input-faint': toHex(readable(mix(ink, input, 0.4), [input, footer])),
    '--sent-ink': toHex(textOn('sentMessageBubbleTextColor', sent)),
    '--received-ink': toHex(textOn('receivedMessageBubbleTextColor', received)),
    '--received-faint': toHex(faint(received)),
    '--ink': toHex(readable(ink, [content, footer, form])),
    '--faint': toHex(faint(content, footer, form)),
    '--accent': toHex(readable(primary, [content, footer, form, input])),
    '--accent-received': toHex(readable(primary, [received, input])),
    '--line': toHex(line(content)),
    // WCAG 2.2, 1.4.11: the edge of a control needs a contrast of 3:1.
    '--edge': toHex(readable(line(input), [input, footer, form], 3)),
    '--bad': toHex(readable(hex('#b42318'), [content, footer, form])),
    '--warn': dark ? '#4a3a12' : '#fdf0cd',
    '--warn-ink': dark ? '#fbe6b0' : '#5a4200',
    '--scheme': dark ? 'dark' : 'light',
  };
}

/**
 * The second colour of the header gradient, if the header text keeps a contrast of 4.5:1 on it; else the primary
 * colour.
 */
function headerShade(primary: Rgb, front: Rgb): Rgb {
  const ink = readable(front, [primary]);
  const shade = mix(primary, luminance(ink) > 0.5 ? BLACK : WHITE, 0.18);
  return contrast(ink, shade) >= 4.5 ? shade : primary;
}

/** The panel's colour rules for the themes light, dark and auto (prefers-color-scheme). */
export function themeRules(configs: Data): string {
  const rule = (p: Palette) =>
    Object.entries(p)
      .map(([k, v]) => `${k}:${v}`)
      .join(';');
  const light = rule(palette(configs, false));
  const dark = rule(palette(configs, true));
  return `.p{${light}}.p[data-theme=dark]{${dark}}@media(prefers-color-scheme:dark){.p[data-theme=auto]{${dark}}}`;
}

export function launcherColours(configs: Data): [back: string, front: string] {
  const p = palette(configs, false);
  return [p['--primary']!, p['--primary-ink']!];
}
