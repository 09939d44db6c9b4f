import { BLACK, WHITE, contrast, luminance, mix, parseHex, readable, toHex, type Rgb } from '@parley/shared/colour.js';
import type { Data } from '@parley/shared/message.js';

const hex = (s: string): Rgb => parseHex(s)!;

export type Palette = Record<string, string>;

/** The colours of the settings as custom properties; texts that nobody could read are moved until they can be. */
export function palette(configs: Data, dark: boolean): Palette {
  const pick = (key: string, otherwise: Rgb) => parseHex(configs[key]) ?? otherwise;
  const primary = pick('primaryBackgroundColor', hex('#0f766e'));
  // In the dark, surfaces are ours and the accents stay the site's.
  const surface = (key: string, light: string, night: string) => (dark ? mix(hex(night), primary, 0.04) : pick(key, hex(light)));
  const content = surface('contentBackgroundColor', '#ffffff', '#15171c');
  const footer = surface('footerBackgroundColor', '#ffffff', '#1b1e24');
  const form = surface('formBackgroundColor', '#ffffff', '#1b1e24');
  const input = surface('inputBackgroundColor', '#ffffff', '#262a32');
  const received = surface('receivedMessageBubbleBgColor', '#eef0f3', '#2a2e37');
  const sent = pick('sentMessageBubbleBgColor', primary);
  const ink = dark ? hex('#f2f4f7') : hex('#16181d');
  const words = (key: string, back: Rgb) => readable(dark && key !== 'sentMessageBubbleTextColor' && key !== 'primaryTextColor' ? ink : pick(key, ink), [back]);
  const faint = (...backs: Rgb[]) => readable(mix(ink, backs[0]!, 0.35), backs);
  const line = (back: Rgb) => mix(ink, back, 0.86);
  const plain = { content, footer, form, input, received, sent, primary };
  return {
    ...Object.fromEntries(Object.entries(plain).map(([name, c]) => [`--${name}`, toHex(c)])),
    '--primary-ink': toHex(readable(pick('primaryTextColor', WHITE), [primary])),
    '--primary-deep': toHex(deep(primary, pick('primaryTextColor', WHITE))),
    '--input-ink': toHex(words('inputTextColor', input)),
    '--input-faint': toHex(readable(mix(ink, input, 0.4), [input, footer])),
    '--sent-ink': toHex(words('sentMessageBubbleTextColor', sent)),
    '--received-ink': toHex(words('receivedMessageBubbleTextColor', received)),
    '--received-faint': toHex(faint(received)),
    '--ink': toHex(readable(ink, [content, footer, form])),
    '--faint': toHex(faint(content, footer, form)),
    '--accent': toHex(readable(primary, [content, footer, form, input])),
    '--accent-received': toHex(readable(primary, [received, input])),
    '--line': toHex(line(content)),
    // The edge of a control has to be seen: 3 to 1 (WCAG 1.4.11).
    '--edge': toHex(readable(line(input), [input, footer, form], 3)),
    '--bad': toHex(readable(hex('#b42318'), [content, footer, form])),
    '--warn': dark ? '#4a3a12' : '#fdf0cd',
    '--warn-ink': dark ? '#fbe6b0' : '#5a4200',
    '--scheme': dark ? 'dark' : 'light',
  };
}

/** The header's lower shade: it stays readable under its text. */
function deep(primary: Rgb, front: Rgb): Rgb {
  const ink = readable(front, [primary]);
  const shade = mix(primary, luminance(ink) > 0.5 ? BLACK : WHITE, 0.18);
  return contrast(ink, shade) >= 4.5 ? shade : primary;
}

/** The rules that give the panel its colours: light, dark, or what the system says. */
export function themeRules(configs: Data): string {
  const rule = (p: Palette) => Object.entries(p).map(([k, v]) => `${k}:${v}`).join(';');
  const light = rule(palette(configs, false));
  const dark = rule(palette(configs, true));
  return `.p{${light}}.p[data-theme=dark]{${dark}}@media(prefers-color-scheme:dark){.p[data-theme=auto]{${dark}}}`;
}

/** The launcher's two colours. */
export function launcherColours(configs: Data): [back: string, front: string] {
  const p = palette(configs, false);
  return [p['--primary']!, p['--primary-ink']!];
}
