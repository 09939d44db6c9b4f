import { useEffect, useState } from 'preact/hooks';

/** A value with listeners, for state that several components share. */
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

/** Returns the value of the store. The component renders again when the value changes. */
export function useStore<T>(store: Store<T>): T {
  const [, draw] = useState(store.value);
  useEffect(() => {
    draw(store.value); // the value may have changed between rendering and this effect
    return store.subscribe((v) => draw(() => v));
  }, [store]);
  return store.value;
}
