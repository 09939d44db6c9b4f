import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { useRule } from '../lib/sheet.js';

/** The number of rows rendered beyond each edge of the viewport. */
const MARGIN = 8;

/** Returns the range of rows to render. */
export function windowOf(
  scrollTop: number,
  height: number,
  rowHeight: number,
  total: number,
  margin = MARGIN,
): { from: number; to: number } {
  const from = Math.max(0, Math.min(total, Math.floor(scrollTop / rowHeight) - margin));
  const to = Math.min(total, Math.ceil((scrollTop + height) / rowHeight) + margin);
  return { from, to: Math.max(from, to) };
}

export interface VirtualListProps<T> {
  label: string;
  items: T[];
  rowHeight: number;
  keyOf(item: T): string;
  /** The key of the selected item. The list scrolls it into view. */
  current?: string | undefined;
  /** Called when the end of the list is near, to load more items. */
  onEnd?: (() => void) | undefined;
  onKeyDown?: (e: KeyboardEvent) => void;
  footer?: ComponentChildren;
  row(item: T): ComponentChildren;
}

/** A list of rows of equal height. The document contains only the rows in and near the viewport. */
export function VirtualList<T>({
  label,
  items,
  rowHeight,
  keyOf,
  current,
  onEnd,
  onKeyDown,
  footer,
  row,
}: VirtualListProps<T>) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ from: 0, to: 30 });
  const measure = () => {
    const b = box.current;
    if (!b) return;
    const next = windowOf(b.scrollTop, b.clientHeight, rowHeight, items.length);
    if (next.from !== view.from || next.to !== view.to) setView(next);
    if (onEnd && next.to >= items.length - MARGIN) onEnd();
  };
  useLayoutEffect(measure, [items, rowHeight]);
  useEffect(() => {
    const watch = new ResizeObserver(measure);
    watch.observe(box.current!);
    return () => watch.disconnect();
  });
  useEffect(() => {
    const at = current === undefined ? -1 : items.findIndex((i) => keyOf(i) === current);
    const b = box.current!;
    if (at < 0) return;
    if (at * rowHeight < b.scrollTop) b.scrollTop = at * rowHeight;
    else if ((at + 1) * rowHeight > b.scrollTop + b.clientHeight) b.scrollTop = (at + 1) * rowHeight - b.clientHeight;
  }, [current]);
  const from = Math.min(view.from, items.length);
  const to = Math.min(view.to, items.length);
  const rule = useRule({ '--above': `${from * rowHeight}px`, '--below': `${(items.length - to) * rowHeight}px` });
  return (
    <div ref={box} class={`virtual ${rule}`} onScroll={measure} onKeyDown={onKeyDown}>
      <div class="above" aria-hidden="true" />
      <ul aria-label={label}>
        {items.slice(from, to).map((item, i) => (
          <li key={keyOf(item)} aria-setsize={items.length} aria-posinset={from + i + 1}>
            {row(item)}
          </li>
        ))}
      </ul>
      <div class="below" aria-hidden="true" />
      {footer}
    </div>
  );
}
