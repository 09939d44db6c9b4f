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
