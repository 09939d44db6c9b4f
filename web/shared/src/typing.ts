/**
 * Lifetime of a typing indicator, in milliseconds. The protocol has no "stopped typing" event, so a lost event cannot leave the indicator
 * on the screen: it ends six seconds after the last `typing` event, or with a message from that side.
 */
export const TYPING_TTL = 6_000;

/** Minimum interval between `typing` events of a client. The server accepts one every two seconds. */
export const TYPING_INTERVAL = 2_500;

export interface Clock {
  now(): number;
  set(act: () => void, ms: number): unknown;
  clear(timer: unknown): void;
}

const browser: Clock = {
  now: () => performance.now(),
  set: (act, ms) => setTimeout(act, ms),
  clear: (timer) => clearTimeout(timer as number),
};

/** The typing indicators of one side of the chat. */
export class Typing {
  /** Names of the typing participants, in order of start; a name may be empty. */
  names: string[] = [];
  readonly #expiry = new Map<string, number>();
  #newest = '';
  #timer: unknown;

  constructor(
    readonly changed: (names: string[]) => void,
    readonly clock: Clock = browser,
  ) {}

  /** Handles a `typing` event with the server time `at`. Ignores an event that is not later than the side's newest message. */
  heard(name: string, at: string): void {
    if (at && at <= this.#newest) return;
    this.#expiry.set(name, this.clock.now() + TYPING_TTL);
    this.#update();
  }

  /** Handles a message from that side, which ends its typing indicators. */
  message(createdAt: string): void {
    if (createdAt > this.#newest) this.#newest = createdAt;
    else if (this.#newest && createdAt < this.#newest) return; // an older message, loaded with the history
    this.clear();
  }

  clear(): void {
    this.#expiry.clear();
    this.#update();
  }

  #update(): void {
    this.clock.clear(this.#timer);
    const now = this.clock.now();
    for (const [name, until] of this.#expiry) if (until <= now) this.#expiry.delete(name);
    if (this.#expiry.size) this.#timer = this.clock.set(() => this.#update(), Math.min(...this.#expiry.values()) - now);
    const names = [...this.#expiry.keys()];
    if (names.join('\n') === this.names.join('\n') && names.length === this.names.length) return;
    this.names = names;
    this.changed(names);
  }
}

/** Leading-edge throttle: calls `act` at most once per pause. */
export function throttle(
  act: () => void,
  pause = TYPING_INTERVAL,
  now: () => number = () => performance.now(),
): () => void {
  let next = -Infinity;
  return () => {
    if (now() < next) return;
    next = now() + pause;
    act();
  };
}
