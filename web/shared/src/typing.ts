/**
 * Who types. The server only says that somebody does: nothing says that somebody has stopped, so nothing that is lost can leave it on the
 * screen. It ends six seconds after it was last heard, or with a message of that side.
 */
export const TYPING_LIFE = 6_000;

/** How often a client says that it types, at most. The server takes one in two seconds. */
export const TYPING_PAUSE = 2_500;

export interface Clock {
  now(): number;
  set(act: () => void, ms: number): unknown;
  clear(timer: unknown): void;
}

const browser: Clock = { now: () => performance.now(), set: (act, ms) => setTimeout(act, ms), clear: (timer) => clearTimeout(timer as number) };

/** Those of one side who type. */
export class Typing {
  /** Their names, in the order in which they began; a name may be empty. */
  names: string[] = [];
  readonly #until = new Map<string, number>();
  #newest = '';
  #timer: unknown;

  constructor(readonly changed: (names: string[]) => void, readonly clock: Clock = browser) {}

  /** Somebody types, as the server said at the time `at`. What is not later than the side's newest message had been typed before it. */
  heard(name: string, at: string): void {
    if (at && at <= this.#newest) return;
    this.#until.set(name, this.clock.now() + TYPING_LIFE);
    this.#update();
  }

  /** A message of that side: it ends what was typed before. */
  message(createdAt: string): void {
    if (createdAt > this.#newest) this.#newest = createdAt;
    else if (this.#newest && createdAt < this.#newest) return; // an old one, of the history
    this.clear();
  }

  clear(): void {
    this.#until.clear();
    this.#update();
  }

  #update(): void {
    this.clock.clear(this.#timer);
    const now = this.clock.now();
    for (const [name, until] of this.#until) if (until <= now) this.#until.delete(name);
    if (this.#until.size) this.#timer = this.clock.set(() => this.#update(), Math.min(...this.#until.values()) - now);
    const names = [...this.#until.keys()];
    if (names.join('\n') === this.names.join('\n') && names.length === this.names.length) return;
    this.names = names;
    this.changed(names);
  }
}

/** Lets one call in each pause through, the first at once. */
export function throttle(act: () => void, pause = TYPING_PAUSE, now: () => number = () => performance.now()): () => void {
  let next = -Infinity;
  return () => {
    if (now() < next) return;
    next = now() + pause;
    act();
  };
}
