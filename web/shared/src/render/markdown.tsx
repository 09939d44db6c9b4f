/** Draws the nodes of a Markdown text (../markdown.ts). A text is never HTML: there are the elements of Tag, no others. */
import type { ComponentChildren } from 'preact';
import { parse, type Child } from '../markdown.js';
import { Link, Linked, type TextProps } from './content.js';

/** Where a node is: at the top of the text, inside a block, or where addresses are no links. */
type Place = 'top' | 'block' | 'verbatim';

/** The text of a message in Markdown. */
export function Markdown(p: TextProps) {
  return <div class="md">{parse(p.text, p.unfinished).map((block) => draw(block, p, 'top'))}</div>;
}

function draw(child: Child, p: TextProps, place: Place): ComponentChildren {
  if (typeof child === 'string') return place === 'verbatim' ? child : <Linked {...p} text={child} />;
  const { tag: Tag, start, href } = child;
  const inside = /^(?:a|code|pre)$/.test(Tag) ? 'verbatim' : 'block';
  const children = child.children.map((c) => draw(c, p, place === 'verbatim' ? place : inside));
  if (href) {
    return (
      <Link href={href} render={p.render} reachable={p.reachable}>
        {children}
      </Link>
    );
  }
  // The direction of a list is that of its text: the text of blocks inside one has no direction of its own.
  const dir = inside === 'verbatim' ? 'ltr' : place === 'top' ? 'auto' : undefined;
  return (
    <Tag class={Tag === 'p' ? 'words' : undefined} dir={dir} {...(start !== undefined && { start })}>
      {children}
    </Tag>
  );
}
