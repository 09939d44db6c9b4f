// A minimal implementation of the hooks that the renderers use. preact/hooks is three times larger, and the widget has a size budget.

import { options, type Component, type Context, type VNode } from 'preact';

interface Slot {
  value?: unknown;
  deps?: unknown[] | undefined;
  effect?: (() => unknown) | undefined;
  cleanup?: unknown;
}

interface Owner extends Component {
  slots?: Slot[];
  context: Record<string, { props: { value: unknown } } | undefined>;
}

/** Preact's internal option hooks, under the mangled names that preact/hooks also uses. The Preact version is pinned. */
interface OptionHooks {
  __r?: (v: Node) => void;
  diffed?: (v: Node) => void;
  unmount?: (v: Node) => void;
}
type Node = VNode & { __c?: Owner };

let owner: Owner;
let next = 0;

const hooks = options as unknown as OptionHooks;
const previous = { ...hooks };

hooks.__r = (v) => {
  previous.__r?.(v);
  owner = v.__c!;
  next = 0;
};

hooks.diffed = (v) => {
  previous.diffed?.(v);
  const slots = v.__c?.slots;
  if (slots?.some((s) => s.effect)) queueMicrotask(() => slots.forEach(runEffect)); // after the whole tree is committed to the DOM
};

hooks.unmount = (v) => {
  previous.unmount?.(v);
  v.__c?.slots?.forEach((s) => {
    s.effect = undefined;
    cleanUp(s);
  });
};

function runEffect(s: Slot) {
  const { effect } = s;
  if (!effect) return;
  s.effect = undefined;
  cleanUp(s);
  s.cleanup = effect();
}

function cleanUp(s: Slot) {
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
  const component = owner;
  const s = slot(() => [
    first,
    (value: T | ((old: T) => T)) => {
      const state = s.value as [T, unknown];
      const now = typeof value === 'function' ? (value as (old: T) => T)(state[0]) : value;
      if (now === state[0]) return;
      s.value = [now, state[1]];
      component.setState({});
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

/** Runs the effect after the DOM is updated. The returned cleanup runs before the next effect and on unmount. */
export function useEffect(effect: () => unknown, deps: unknown[]): void {
  const s = slot(() => undefined);
  if (changed(s.deps, deps)) s.effect = effect;
  s.deps = deps;
}

/** Reads a context. It does not subscribe: a component that does not re-render keeps the old value. */
export function useContext<T>(context: Context<T>): T {
  return owner.context[(context as unknown as { __c: string }).__c]!.props.value as T;
}
