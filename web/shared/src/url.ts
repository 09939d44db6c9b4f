/** Returns the URL when following it can do no harm, else undefined. Relative URLs count from base. */
export function safeLink(url: string, base?: string): string | undefined {
  return parse(url, base, ['http:', 'https:']);
}

/** tel: for a number as people write it. */
export function telLink(phone: string): string | undefined {
  return /^\s*\+?[0-9 ()-]*[0-9][0-9 ()-]*$/.test(phone) ? `tel:${phone.replace(/[^0-9+]/g, '')}` : undefined;
}

/** Whether url is on one of the origins. */
export function isOn(url: string, origins: string[]): boolean {
  try {
    const u = new URL(url);
    return origins.includes(u.origin) || (u.protocol === 'data:' && origins.includes('data:'));
  } catch {
    return false;
  }
}

export function hostOf(url: string): string {
  try {
    return new URL(url).host;
  } catch {
    return '';
  }
}

function parse(url: string, base: string | undefined, protocols: string[]): string | undefined {
  if (!url) return undefined;
  try {
    const u = new URL(url, base);
    return protocols.includes(u.protocol) && !u.username && !u.password ? u.href : undefined;
  } catch {
    return undefined;
  }
}

/** A piece of a text: words, or a link in them. */
export interface Piece { text: string; href?: string }

const LINK = /\bhttps?:\/\/[^\s<>"'“”«»]+|\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+/giu;

/** Finds the web and mail addresses in a text. What closes a sentence or a bracket does not belong to them. */
export function pieces(text: string): Piece[] {
  const found: Piece[] = [];
  let end = 0;
  for (const match of text.matchAll(LINK)) {
    let word = match[0].replace(/[.,;:!?،؛؟。、]+$/u, '');
    if (word.endsWith(')') && !word.includes('(')) word = word.slice(0, -1);
    const href = word.includes('://') ? safeLink(word) : `mailto:${word}`;
    if (!href) continue;
    if (match.index > end) found.push({ text: text.slice(end, match.index) });
    found.push({ text: word, href });
    end = match.index + word.length;
  }
  if (end < text.length) found.push({ text: text.slice(end) });
  return found;
}
