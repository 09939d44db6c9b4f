import { useEffect, useRef, useState } from 'preact/hooks';

export interface Loaded<T> {
  data: T | undefined;
  error: unknown;
  loading: boolean;
  reload(): void;
  set(change: (old: T) => T): void;
}

/** Loads when the dependencies change. Late responses for earlier dependencies are dropped. */
export function useLoad<T>(load: (signal: AbortSignal) => Promise<T>, deps: unknown[]): Loaded<T> {
  const [state, setState] = useState<{ data?: T | undefined; error?: unknown; loading: boolean }>({ loading: true });
  const [round, setRound] = useState(0);
  const known = useRef<unknown[]>();
  useEffect(() => {
    const stop = new AbortController();
    const same = known.current?.every((d, i) => d === deps[i]); // a reload keeps the current data
    known.current = deps;
    setState((s) => ({ data: same ? s.data : undefined, loading: true }));
    load(stop.signal).then(
      (data) => !stop.signal.aborted && setState({ data, loading: false }),
      (error) => !stop.signal.aborted && setState((s) => ({ data: s.data, error, loading: false })),
    );
    return () => stop.abort();
  }, [...deps, round]);
  return {
    data: state.data,
    error: state.error,
    loading: state.loading,
    reload: () => setRound((n) => n + 1),
    set: (change) => setState((s) => (s.data === undefined ? s : { ...s, data: change(s.data) })),
  };
}

export interface Chunk<T> {
  items: T[];
  next: string;
}

export interface Pages<T> {
  items: T[];
  error: unknown;
  loading: boolean;
  /** Whether the first page has been loaded. */
  ready: boolean;
  more: boolean;
  loadMore(): void;
  reload(): void;
  set(change: (old: T[]) => T[]): void;
}

/** Loads a list page by page, with the cursor from the previous page. */
export function usePages<T>(
  load: (cursor: string, signal: AbortSignal) => Promise<Chunk<T>>,
  deps: unknown[],
): Pages<T> {
  interface State {
    items: T[];
    next: string;
    ready: boolean;
    loading: boolean;
    error?: unknown;
  }
  const [state, setState] = useState<State>({ items: [], next: '', ready: false, loading: true });
  const [round, setRound] = useState(0);
  const run = useRef<AbortController>();
  const busy = useRef(false);
  const fetchPage = (cursor: string, stop: AbortController) => {
    busy.current = true;
    setState((s) => ({ ...s, loading: true, error: undefined }));
    load(cursor, stop.signal).then(
      (page) => {
        if (stop.signal.aborted) return;
        busy.current = false;
        setState((s) => ({
          items: cursor ? [...s.items, ...page.items] : page.items,
          next: page.next,
          ready: true,
          loading: false,
        }));
      },
      (error) => {
        if (stop.signal.aborted) return;
        busy.current = false;
        setState((s) => ({ ...s, error, loading: false }));
      },
    );
  };
  const known = useRef<unknown[]>();
  useEffect(() => {
    const stop = (run.current = new AbortController());
    if (!known.current?.every((d, i) => d === deps[i])) setState({ items: [], next: '', ready: false, loading: true });
    known.current = deps;
    fetchPage('', stop);
    return () => stop.abort();
  }, [...deps, round]);
  return {
    ...state,
    error: state.error,
    more: state.next !== '',
    loadMore: () => {
      if (!busy.current && state.next && !state.error) fetchPage(state.next, run.current!);
    },
    reload: () => setRound((n) => n + 1),
    set: (change) => setState((s) => ({ ...s, items: change(s.items) })),
  };
}
