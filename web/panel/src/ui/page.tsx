import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { Store, useStore } from '../lib/store.js';
import { strings } from '../strings.js';
import { Glyph, type GlyphName } from './icon.js';

/** The document title without the count of unread chats. */
export const pageTitle = new Store('');

export function useTitle(title: string): void {
  useEffect(() => pageTitle.set(title), [title]);
}

export function TitleBadge({ unread }: { unread: number }) {
  const title = useStore(pageTitle);
  useEffect(() => {
    document.title = strings.titleOf(title, unread);
  }, [title, unread]);
  return null;
}

/** The page of a section: heading, actions and content. */
export function Page({
  title,
  lead,
  actions,
  back,
  wide,
  children,
}: {
  title: string;
  lead?: ComponentChildren;
  actions?: ComponentChildren;
  back?: { href: string; label: string };
  wide?: boolean;
  children: ComponentChildren;
}) {
  useTitle(title);
  return (
    <div class={wide ? 'page wide' : 'page'}>
      <header class="page-head">
        <div class="page-title">
          {back && (
            <a class="back" href={back.href}>
              <Glyph name="left" size={16} />
              {back.label}
            </a>
          )}
          <h1 tabIndex={-1}>{title}</h1>
          {lead && <p>{lead}</p>}
        </div>
        {actions && <div class="actions">{actions}</div>}
      </header>
      {children}
    </div>
  );
}

export function Card({
  title,
  lead,
  actions,
  children,
  class: more,
}: {
  title?: string;
  lead?: ComponentChildren;
  actions?: ComponentChildren;
  children: ComponentChildren;
  class?: string;
}) {
  return (
    <section class={more ? `panel-card ${more}` : 'panel-card'}>
      {title && (
        <header>
          <div>
            <h2>{title}</h2>
            {lead && <p>{lead}</p>}
          </div>
          {actions && <div class="actions">{actions}</div>}
        </header>
      )}
      {children}
    </section>
  );
}

export interface TabLink {
  href: string;
  label: string;
  icon?: GlyphName;
  current: boolean;
}

/** Links that look like tabs. Each tab has its own address. */
export function TabLinks({ label, tabs }: { label: string; tabs: TabLink[] }) {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map((t) => (
        <a key={t.href} href={t.href} aria-current={t.current ? 'page' : undefined}>
          {t.icon && <Glyph name={t.icon} size={16} />}
          {t.label}
        </a>
      ))}
    </nav>
  );
}

/** A table that scrolls horizontally when the page is too narrow. */
export function Table({
  label,
  head,
  numbers = [],
  children,
  class: more,
}: {
  label: string;
  head: ComponentChildren[] /** The indexes of the numeric columns. */;
  numbers?: number[];
  children: ComponentChildren;
  class?: string;
}) {
  return (
    <div class={more ? `table-wrap ${more}` : 'table-wrap'} tabIndex={0} role="region" aria-label={label}>
      <table>
        <caption class="sr">{label}</caption>
        <thead>
          <tr>
            {head.map((h, i) => (
              <th key={i} scope="col" class={numbers.includes(i) ? 'num' : undefined}>
                {h}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

export function Facts({ facts }: { facts: [label: string, value: ComponentChildren][] }) {
  return (
    <dl class="facts">
      {facts.map(([label, value]) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
