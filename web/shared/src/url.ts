/** Returns the URL if it is http(s) without credentials, else undefined. Relative URLs are resolved against base. */
export function safeLink(url: string, base?: string): string | undefined {
  return parse(url, base, ['http:', 'https:']);
}

/** Returns a tel: URL for a phone number in human notation, else undefined. */
export function telLink(phone: string): string | undefined {
  return /^\s*\+?[0-9 ()-]*[0-9][0-9 ()-]*$/.test(phone) ? `tel:${phone.replace(/[^0-9+]/g, '')}` : undefined;
}

/** Whether the origin of url is in the list. "data:" in the list allows data: URLs. */
export function isFromOrigins(url: string, origins: string[]): boolean {
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

/** A segment of a text: plain text, or a link if `href` is set. */
export interface Segment {
  text: string;
  href?: string;
}

const LINK = /\bhttps?:\/\/[^\s<>"'“”«»]+|\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+/giu;

/** Splits a text into plain segments and links (web and email). A link excludes trailing punctuation and an unmatched closing bracket. */
export function linkify(text: string): Segment[] {
  const found: Segment[] = [];
  let end = 0;
  for (const match of text.matchAll(LINK)) {
    let address = match[0].replace(/[.,;:!?،؛؟。、]+$/u, '');
    if (address.endsWith(')') && !address.includes('(')) address = address.slice(0, -1);
    const href = address.includes('://') ? safeLink(address) : `mailto:${address}`;
    if (!href) continue;
    if (match.index > end) found.push({ text: text.slice(end, match.index) });
    found.push({ text: address, href });
    end = match.index + address.length;
  }
  if (end < text.length) found.push({ text: text.slice(end) });
  return found;
}
