import { useEffect, useState } from 'preact/hooks';

/** A value with listeners: state that several parts of the page share. */
export class Store<T> {
  #value: T;
  readonly #listeners = new Set<(value: T) => void>();

  constructor(first: T) {
    this.#value = first;
  }

  get value(): T {
    return this.#value;
  }

  set(value: T): void {
    if (Object.is(value, this.#value)) return;
    this.#value = value;
    for (const f of [...this.#listeners]) f(value);
  }

  update(change: (old: T) => T): void {
    this.set(change(this.#value));
  }

  subscribe(f: (value: T) => void): () => void {
    this.#listeners.add(f);
    return () => this.#listeners.delete(f);
  }
}

/** The store's value; the component is drawn again when it changes. */
export function useStore<T>(store: Store<T>): T {
  const [, draw] = useState(store.value);
  useEffect(() => {
    draw(store.value); // it may have changed between drawing and now
    return store.subscribe((v) => draw(() => v));
  }, [store]);
  return store.value;
}
