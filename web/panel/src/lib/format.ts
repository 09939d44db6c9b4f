import { strings } from '../strings.js';

export const locale = 'en';

const number = new Intl.NumberFormat(locale);
const compact = new Intl.NumberFormat(locale, { notation: 'compact', maximumFractionDigits: 1 });
const time = new Intl.DateTimeFormat(locale, { hour: '2-digit', minute: '2-digit', hour12: false });
const clock = new Intl.DateTimeFormat(locale, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
  hour12: false,
});
const day = new Intl.DateTimeFormat(locale, { day: 'numeric', month: 'short' });
const dayYear = new Intl.DateTimeFormat(locale, { day: 'numeric', month: 'short', year: 'numeric' });
const longDay = new Intl.DateTimeFormat(locale, { weekday: 'long', day: 'numeric', month: 'long' });
const full = new Intl.DateTimeFormat(locale, {
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  hour12: false,
});
const plural = new Intl.PluralRules(locale);

export const formatNumber = (n: number): string => number.format(n);
export const formatCompact = (n: number): string => compact.format(n);
export const formatTime = (at: number | string): string => time.format(new Date(at));
export const formatClock = (at: number | string): string => clock.format(new Date(at));
export const formatFull = (at: number | string): string => full.format(new Date(at));

/** Formats a number with its noun, such as '1 chat' or '2 chats'. */
export const count = (n: number, [one, other]: readonly [string, string]): string =>
  `${number.format(n)} ${plural.select(n) === 'one' ? one : other}`;

/** Returns the size of a text in UTF-8. */
export const bytesOf = (text: string): number => new TextEncoder().encode(text).length;

export function formatBytes(n: number): string {
  const units = ['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte'];
  const i = n < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(n) / 10));
  return new Intl.NumberFormat(locale, {
    style: 'unit',
    unit: units[i]!,
    unitDisplay: i ? 'short' : 'long',
    maximumFractionDigits: 1,
  }).format(n / 1024 ** i);
}

const midnight = (at: number) => new Date(at).setHours(0, 0, 0, 0);

/** Formats a date briefly: only the time for today, the day for this year, otherwise the day with the year. */
export function formatShort(at: number | string, now = Date.now()): string {
  const t = new Date(at).getTime();
  if (midnight(t) === midnight(now)) return time.format(t);
  return (new Date(t).getFullYear() === new Date(now).getFullYear() ? day : dayYear).format(t);
}

export const formatDate = (at: number | string): string => dayYear.format(new Date(at));

const utcDay = new Intl.DateTimeFormat(locale, { day: 'numeric', month: 'short', year: 'numeric', timeZone: 'UTC' });

/** Formats a day of UTC, such as "2026-11-28", as the same day in any time zone. */
export const formatUTCDay = (day: string): string => utcDay.format(new Date(day));

/** Formats the heading of a day in a conversation. */
export function formatDay(at: number | string, now = Date.now()): string {
  const t = new Date(at).getTime();
  const days = Math.round((midnight(t) - midnight(now)) / 86_400_000);
  if (days === 0) return strings.today;
  if (days === -1) return strings.yesterday;
  return new Date(t).getFullYear() === new Date(now).getFullYear() ? longDay.format(t) : dayYear.format(t);
}

const units = [
  [86_400, 'd'],
  [3600, 'h'],
  [60, 'min'],
  [1, 's'],
] as const;

/** Formats a duration in its two largest units: 93,600 s is "1 d 2 h". */
export function formatDuration(seconds: number): string {
  let rest = Math.max(0, Math.round(seconds));
  const parts: string[] = [];
  for (const [size, unit] of units) {
    const n = Math.floor(rest / size);
    if (n > 0) parts.push(`${n} ${unit}`);
    else if (parts.length) break;
    rest -= n * size;
    if (parts.length === 2) break;
  }
  return parts.join(' ') || '0 s';
}

/** Formats a time as "just now", "5 min ago" or, after a day, a date. */
export function formatAgo(at: number | string, now = Date.now()): string {
  const seconds = (now - new Date(at).getTime()) / 1000;
  if (seconds < 45) return strings.justNow;
  if (seconds < 86_400)
    return strings.ago(
      formatDuration(seconds < 3600 ? Math.max(60, Math.round(seconds / 60) * 60) : Math.floor(seconds / 3600) * 3600),
    );
  return formatShort(at, now);
}

/** Returns the initials of a name, for an avatar. */
export function initials(name: string): string {
  const words = name
    .trim()
    .split(/[\s@._-]+/)
    .filter(Boolean);
  return ((words[0]?.[0] ?? '?') + (words.length > 1 ? words[1]![0]! : '')).toUpperCase();
}
