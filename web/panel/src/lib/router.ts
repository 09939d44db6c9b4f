import { Store, useStore } from './store.js';

/** Where the page is: the fragment's path in parts, and its query. */
export interface Place { parts: string[]; query: URLSearchParams; path: string }

/** Reads a fragment such as "#/inbox/3f…?status=open". */
export function parsePlace(hash: string): Place {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  return { path: '/' + path, parts: path.split('/').filter(Boolean).map(decode), query: new URLSearchParams(query) };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Asked before the page goes to another path; false keeps it where it is. */
type Guard = (path: string) => boolean;

let guard: Guard | undefined;

export const place = new Store<Place>(parsePlace(globalThis.location?.hash ?? ''));

export const usePlace = (): Place => useStore(place);

/** Goes to a path such as "/inbox/3f…". */
export function navigate(path: string, { replace = false } = {}): void {
  if (!replace && guard && !guard(path)) return;
  history[replace ? 'replaceState' : 'pushState'](null, '', '#' + path);
  place.set(parsePlace(location.hash));
}

/** Changes the query without a step in the history. */
export function setQuery(values: Record<string, string | undefined>): void {
  const { path, query } = place.value;
  const changed = new URLSearchParams(query);
  for (const [key, value] of Object.entries(values)) {
    if (value) changed.set(key, value);
    else changed.delete(key);
  }
  const text = changed.toString();
  history.replaceState(null, '', '#' + path + (text ? `?${text}` : ''));
  place.set(parsePlace(location.hash));
}

export function setGuard(f: Guard | undefined): void {
  guard = f;
}

export function startRouter(): void {
  let last = location.hash;
  const moved = () => {
    if (location.hash === last) return;
    if (guard && !guard(location.hash.slice(1))) {
      history.pushState(null, '', last || '#/');
      return;
    }
    last = location.hash;
    place.set(parsePlace(last));
  };
  addEventListener('hashchange', moved);
  addEventListener('popstate', moved);
  place.subscribe(() => {
    last = location.hash;
  });
  addEventListener('beforeunload', (e) => {
    if (guard) e.preventDefault();
  });
}
