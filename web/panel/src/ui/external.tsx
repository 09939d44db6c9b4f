import type { ComponentChildren } from 'preact';
import { strings } from '../strings.js';

/** A link to a page of another site, in a new tab. */
export function ExternalLink({ href, children }: { href: string; children: ComponentChildren }) {
  return (
    <a class="external" href={href} target="_blank" rel="noopener noreferrer">
      {children}
      <span class="sr"> {strings.render.newTab}</span>
    </a>
  );
}
