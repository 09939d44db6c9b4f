// The few hooks that the renderers use. preact/hooks weighs three times as much, and the whole widget has a budget.

import { options, type Component, type Context, type VNode } from 'preact';

interface Slot { value?: unknown; deps?: unknown[] | undefined; effect?: (() => unknown) | undefined; cleanup?: unknown }

interface Owner extends Component { slots?: Slot[]; context: Record<string, { props: { value: unknown } } | undefined> }

/** Preact's own seams, under the names that its hooks package uses as well: the version is pinned. */
interface Seams {
  __r?: (v: Node) => void;
  diffed?: (v: Node) => void;
  unmount?: (v: Node) => void;
}
type Node = VNode & { __c?: Owner };

let owner: Owner;
let next = 0;

const seams = options as unknown as Seams;
const before = { ...seams };

seams.__r = (v) => {
  before.__r?.(v);
  owner = v.__c!;
  next = 0;
};

seams.diffed = (v) => {
  before.diffed?.(v);
  const slots = v.__c?.slots;
  if (slots?.some((s) => s.effect)) queueMicrotask(() => slots.forEach(run)); // when all of it is in the document
};

seams.unmount = (v) => {
  before.unmount?.(v);
  v.__c?.slots?.forEach((s) => {
    s.effect = undefined;
    end(s);
  });
};

function run(s: Slot) {
  const { effect } = s;
  if (!effect) return;
  s.effect = undefined;
  end(s);
  s.cleanup = effect();
}

function end(s: Slot) {
  if (typeof s.cleanup === 'function') s.cleanup();
  s.cleanup = undefined;
}

function slot(first: () => unknown): Slot {
  const slots = (owner.slots ??= []);
  return (slots[next++] ??= { value: first() });
}

export function useState<T>(first: T): [T, (value: T | ((old: T) => T)) => void];
export function useState<T>(): [T | undefined, (value: T | undefined) => void];
export function useState<T>(first?: T) {
  const mine = owner;
  const s = slot(() => [
    first,
    (value: T | ((old: T) => T)) => {
      const state = s.value as [T, unknown];
      const now = typeof value === 'function' ? (value as (old: T) => T)(state[0]) : value;
      if (now === state[0]) return;
      s.value = [now, state[1]];
      mine.setState({});
    },
  ]);
  return s.value;
}

export function useRef<T>(): { current: T | null } {
  return slot(() => ({ current: null })).value as { current: T | null };
}

const changed = (a: unknown[] | undefined, b: unknown[]) => !a || b.some((v, i) => v !== a[i]);

export function useMemo<T>(make: () => T, deps: unknown[]): T {
  const s = slot(() => undefined);
  if (changed(s.deps, deps)) s.value = make();
  s.deps = deps;
  return s.value as T;
}

/** Runs after the change is in the document; what it returns runs before the next time, and at the end. */
export function useEffect(effect: () => unknown, deps: unknown[]): void {
  const s = slot(() => undefined);
  if (changed(s.deps, deps)) s.effect = effect;
  s.deps = deps;
}

/** Reads a context. A component that is not drawn again does not notice a change. */
export function useContext<T>(context: Context<T>): T {
  return owner.context[(context as unknown as { __c: string }).__c]!.props.value as T;
}
