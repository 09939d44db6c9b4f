/**
 * BroadcastChannel messages between the tabs of one session. Each message carries its whole payload, because another
 * tab may receive it before it can read the corresponding localStorage write; `storage` events signal stored changes.
 */
export type TabEvent =
  | { kind: 'message'; message: unknown; key?: string }
  | { kind: 'part'; part: unknown }
  | { kind: 'progress'; key: string; share: number }
  | { kind: 'cancel'; key: string }
  | { kind: 'connection'; connection: string }
  | { kind: 'typing'; name: string; at: string }
  | { kind: 'read'; read: unknown }
  | { kind: 'writing' }
  | { kind: 'ended' }
  | { kind: 'hello' }
  | { kind: 'ping' }
  | { kind: 'pong' };

export interface TabsConfig {
  name: string;
  /** The session is not shared with other tabs. */
  isolated: boolean;
  onEvent(event: TabEvent): void;
  /** Called when this tab gains or loses leadership. */
  onLeadershipChange(isLeader: boolean): void;
}

/** Time for the leader to answer the ping of a visible tab. */
const LEADER_TIMEOUT = 3_000;

/**
 * Leader election among the tabs of one session. The leader holds the socket and sends; the other tabs receive its
 * events through a BroadcastChannel. Leadership is a Web Lock, so another tab takes over as soon as the leader closes.
 * Without Web Locks or BroadcastChannel, every tab leads.
 */
export class Tabs {
  isLeader = false;
  #channel: BroadcastChannel | undefined;
  #release: (() => void) | undefined;
  #lockRequest: AbortController | undefined;
  #leaderTimer: ReturnType<typeof setTimeout> | undefined;
  #stopped = false;

  constructor(readonly config: TabsConfig) {}

  start(): void {
    this.#stopped = false;
    if (this.config.isolated || typeof BroadcastChannel === 'undefined' || !globalThis.navigator?.locks) {
      this.#setLeader(true);
      return;
    }
    this.#channel = new BroadcastChannel(this.config.name);
    this.#channel.onmessage = (e: MessageEvent<TabEvent>) => this.#onChannelMessage(e.data);
    this.#requestLock();
    this.post({ kind: 'hello' });
  }

  post(event: TabEvent): void {
    this.#channel?.postMessage(event);
  }

  /** Steals leadership from a leader that the browser has frozen. Call it when this tab becomes visible. */
  checkLeader(): void {
    if (this.isLeader || this.#leaderTimer !== undefined || !this.#channel) return;
    this.post({ kind: 'ping' });
    this.#leaderTimer = setTimeout(() => {
      this.#leaderTimer = undefined;
      this.#requestLock(true);
    }, LEADER_TIMEOUT);
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#leaderTimer);
    this.#leaderTimer = undefined;
    this.#lockRequest?.abort();
    this.#release?.();
    this.#channel?.close();
    this.#channel = undefined;
    this.isLeader = false;
  }

  #onChannelMessage(event: TabEvent): void {
    if (event.kind === 'ping') {
      if (this.isLeader) this.post({ kind: 'pong' });
      return;
    }
    if (event.kind !== 'pong') return this.config.onEvent(event);
    clearTimeout(this.#leaderTimer);
    this.#leaderTimer = undefined;
  }

  #requestLock(steal = false): void {
    this.#lockRequest?.abort();
    const request = (this.#lockRequest = new AbortController());
    const options = steal ? { steal: true } : { signal: request.signal };
    navigator.locks
      .request(this.config.name, options, () => {
        if (this.#stopped) return undefined;
        this.#setLeader(true);
        return new Promise<void>((resolve) => (this.#release = resolve));
      })
      .catch(() => {
        // The request was aborted while pending, or another tab stole the lock.
        if (this.#stopped || request.signal.aborted) return;
        this.#setLeader(false);
        this.#requestLock();
      });
  }

  #setLeader(isLeader: boolean): void {
    if (this.isLeader === isLeader) return;
    this.isLeader = isLeader;
    this.config.onLeadershipChange(isLeader);
  }
}
