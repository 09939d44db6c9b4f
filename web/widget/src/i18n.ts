import languages from 'languages';
import type { Plural, Strings } from './i18n/strings.js';

const RTL = new Set(['ar', 'fa', 'he']);

export type TextKey = { [K in keyof Strings]: Strings[K] extends string ? K : never }[keyof Strings];
export type PluralKey = { [K in keyof Strings]: Strings[K] extends string ? never : K }[keyof Strings];
export type Values = Record<string, string | number>;

/** The texts of one language, and its number, date and plural formats from Intl. */
export class Language {
  readonly rtl: boolean;
  readonly #plural: Intl.PluralRules;
  readonly #number: Intl.NumberFormat;
  readonly #time: Intl.DateTimeFormat;
  readonly #weekday: (at: number) => string;
  readonly #date: (at: number) => string;
  readonly #dateAndTime: (at: number) => string;
  readonly #day: (at: number) => string;
  readonly #full: Intl.DateTimeFormat;
  readonly #relative: Intl.RelativeTimeFormat;

  constructor(
    readonly code: string,
    readonly strings: Strings,
    readonly locale = code,
  ) {
    this.rtl = RTL.has(code);
    this.#plural = new Intl.PluralRules(locale);
    this.#number = new Intl.NumberFormat(locale);
    this.#time = new Intl.DateTimeFormat(locale, { timeStyle: 'short' });
    const date = (options: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat(locale, options).format;
    const full = date({ dateStyle: 'full' });
    this.#weekday = date({ weekday: 'long' });
    this.#date = date({ dateStyle: 'long' });
    this.#dateAndTime = date({ dateStyle: 'long', timeStyle: 'short' });
    // dateStyle "full" puts the year first in the Persian calendar, which is unusual in Persian.
    this.#day = code === 'fa' ? (at) => `${this.#weekday(at)} ${this.#date(at)}` : full;
    this.#full = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short' });
    this.#relative = new Intl.RelativeTimeFormat(locale, { numeric: 'auto', style: 'short' });
  }

  t(key: TextKey, values?: Values): string {
    return fill(this.strings[key], values);
  }

  n(key: PluralKey, n: number): string {
    const forms: Plural = this.strings[key];
    return fill(forms[this.#plural.select(n)] ?? forms.other, { n: this.#number.format(n) });
  }

  number = (n: number): string => this.#number.format(n);

  percent = (share: number): string => new Intl.NumberFormat(this.locale, { style: 'percent' }).format(share);

  /** Formats a size with its localised unit: 1,536 is "1.5 kB". */
  bytes(n: number): string {
    const units = ['byte', 'kilobyte', 'megabyte', 'gigabyte'];
    const i = n < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(n) / 10));
    const format = {
      style: 'unit',
      unit: units[i]!,
      unitDisplay: i ? 'short' : 'long',
      maximumFractionDigits: 1,
    } as const;
    return new Intl.NumberFormat(this.locale, format).format(n / 1024 ** i);
  }

  time = (at: number): string => this.#time.format(at);
  full = (at: number): string => this.#full.format(at);

  /** A relative time within the last hour, otherwise the time of day. */
  ago(at: number, now: number): string {
    const minutes = Math.round((at - now) / 60_000);
    if (minutes > -1) return this.#relative.format(0, 'second');
    if (minutes > -60) return this.#relative.format(minutes, 'minute');
    return this.time(at);
  }

  /** A time to come, as "tomorrow at 8:00 AM": today, tomorrow, a weekday within a week, or the date. */
  when(at: number, now: number): string {
    const days = daysBetween(now, at);
    const near = (days >= 0 && this.#near(days)) || (days > 1 && days < 7 && this.#weekday(at));
    return this.#dateAndTime(at).replace(near ? this.#date(at) : '', near || '');
  }

  /** Heading of a day in the transcript. */
  day(at: number, now: number): string {
    const near = this.#near(daysBetween(now, at));
    return near ? near[0]!.toLocaleUpperCase(this.locale) + near.slice(1) : this.#day(at);
  }

  /** "yesterday", "today" or "tomorrow"; empty for any other day. */
  #near(days: number): string {
    return days * days < 2 ? this.#relative.format(days, 'day') : '';
  }
}

/** Start of the day in the local time zone. */
export const midnight = (at: number): number => new Date(at).setHours(0, 0, 0, 0);

const daysBetween = (from: number, to: number): number => Math.round((midnight(to) - midnight(from)) / 86_400_000);

export function fill(text: string, values: Values = {}): string {
  return text.replace(/\{(\w+)\}/g, (all, name: string) => (name in values ? String(values[name]) : all));
}

/** Loads the language of a BCP 47 tag such as "pt-BR"; falls back to English. */
export async function loadLanguage(tag: string): Promise<Language> {
  const code = tag.toLowerCase().split(/[-_]/)[0]!;
  const known = code in languages ? code : 'en';
  return new Language(known, (await languages[known]!()).default, locale(tag, known));
}

/** The canonical tag if it is valid and of that language, because regions such as "en-GB" have their own formats; else the code. */
function locale(tag: string, code: string): string {
  try {
    const [known] = Intl.getCanonicalLocales(tag.replace(/_/g, '-'));
    return known?.toLowerCase().startsWith(code) ? known : code;
  } catch {
    return code;
  }
}
