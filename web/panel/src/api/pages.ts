import type { Chunk } from '../lib/load.js';

/** Entries of a page that is shown before the next one is asked for. */
export const SHOWN = 50;

/** Entries of a page of a list that is loaded completely: the API's maximum. */
export const MOST = 200;

/** An answer with a page of a list, in the member named K. */
export type PageAnswer<K extends string, T> = Record<K, T[]> & { next: string | null };

/** Returns the entries of an answer and the cursor of the next page; '' on the last page. */
export const chunkOf =
  <K extends string, T>(member: K) =>
  (answer: PageAnswer<K, T>): Chunk<T> => ({ items: answer[member], next: answer.next ?? '' });

/** The entries after which a filtered list is shown. */
const ENOUGH = 20;

/**
 * Loads the next entries of a filtered list. A page may be short or empty although more pages follow: it goes on until there
 * are enough entries, or no more pages.
 */
export async function filled<T>(load: (cursor: string) => Promise<Chunk<T>>, cursor: string): Promise<Chunk<T>> {
  const items: T[] = [];
  for (let next = cursor; ; ) {
    const page = await load(next);
    items.push(...page.items);
    next = page.next;
    if (!next || items.length >= ENOUGH) return { items, next };
  }
}

/** Loads a whole list page by page. The pages of one list follow each other, because each has the cursor of the next one. */
export async function whole<T>(load: (cursor: string) => Promise<Chunk<T>>): Promise<T[]> {
  const items: T[] = [];
  for (let cursor = ''; ; ) {
    const page = await load(cursor);
    items.push(...page.items);
    if (!page.next) return items;
    cursor = page.next;
  }
}
