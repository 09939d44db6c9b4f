import { Store, useStore } from './store.js';

/** The current route: the path of the fragment, its segments, and its query. */
export interface Route {
  parts: string[];
  query: URLSearchParams;
  path: string;
}

/** Parses a fragment such as "#/inbox/3f…?status=open". */
export function parseRoute(hash: string): Route {
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

/** Called before navigation to another path; false cancels the navigation. */
type Guard = (path: string) => boolean;

let guard: Guard | undefined;

export const route = new Store<Route>(parseRoute(globalThis.location?.hash ?? ''));

export const useRoute = (): Route => useStore(route);

/** Navigates to a path such as "/inbox/3f…". */
export function navigate(path: string, { replace = false } = {}): void {
  if (!replace && guard && !guard(path)) return;
  history[replace ? 'replaceState' : 'pushState'](null, '', '#' + path);
  route.set(parseRoute(location.hash));
}

/** Changes the query without a new history entry. */
export function setQuery(values: Record<string, string | undefined>): void {
  const { path, query } = route.value;
  const changed = new URLSearchParams(query);
  for (const [key, value] of Object.entries(values)) {
    if (value) changed.set(key, value);
    else changed.delete(key);
  }
  const text = changed.toString();
  history.replaceState(null, '', '#' + path + (text ? `?${text}` : ''));
  route.set(parseRoute(location.hash));
}

export function setGuard(f: Guard | undefined): void {
  guard = f;
}

export function startRouter(): void {
  let last = location.hash;
  const onLocationChange = () => {
    if (location.hash === last) return;
    if (guard && !guard(location.hash.slice(1))) {
      history.pushState(null, '', last || '#/');
      return;
    }
    last = location.hash;
    route.set(parseRoute(last));
  };
  addEventListener('hashchange', onLocationChange);
  addEventListener('popstate', onLocationChange);
  route.subscribe(() => {
    last = location.hash;
  });
  addEventListener('beforeunload', (e) => {
    if (guard) e.preventDefault();
  });
}
