/**
 * What the tabs of one session tell each other. It carries all that the others need: localStorage shows a write of another tab later
 * than a channel delivers, so what is stored is followed by `storage` events.
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
  /** The session is this tab's own. */
  alone: boolean;
  heard(event: TabEvent): void;
  /** This tab is the one that holds the socket and sends, or no longer. */
  lead(leads: boolean): void;
}

/** How long a leader may take to answer a tab that is being looked at. */
const PATIENCE = 3_000;

/**
 * The tabs of one session: one of them, the leader, holds the socket and sends; the others hear from it. A Web Lock decides who
 * leads, so that another tab takes over in the moment in which the leader closes. Where the browser lacks locks or channels,
 * every tab leads.
 */
export class Tabs {
  leads = false;
  #channel: BroadcastChannel | undefined;
  #release: (() => void) | undefined;
  #waiting: AbortController | undefined;
  #patience: ReturnType<typeof setTimeout> | undefined;
  #stopped = false;

  constructor(readonly config: TabsConfig) {}

  start(): void {
    this.#stopped = false;
    if (this.config.alone || typeof BroadcastChannel === 'undefined' || !globalThis.navigator?.locks) {
      this.#lead(true);
      return;
    }
    this.#channel = new BroadcastChannel(this.config.name);
    this.#channel.onmessage = (e: MessageEvent<TabEvent>) => this.#hear(e.data);
    this.#queue();
    this.post({ kind: 'hello' });
  }

  post(event: TabEvent): void {
    this.#channel?.postMessage(event);
  }

  /** Takes over from a leader that the browser has put to sleep. Call it when the visitor looks at this tab. */
  check(): void {
    if (this.leads || this.#patience !== undefined || !this.#channel) return;
    this.post({ kind: 'ping' });
    this.#patience = setTimeout(() => {
      this.#patience = undefined;
      this.#queue(true);
    }, PATIENCE);
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#patience);
    this.#patience = undefined;
    this.#waiting?.abort();
    this.#release?.();
    this.#channel?.close();
    this.#channel = undefined;
    this.leads = false;
  }

  #hear(event: TabEvent): void {
    if (event.kind === 'ping') {
      if (this.leads) this.post({ kind: 'pong' });
      return;
    }
    if (event.kind !== 'pong') return this.config.heard(event);
    clearTimeout(this.#patience);
    this.#patience = undefined;
  }

  #queue(steal = false): void {
    this.#waiting?.abort();
    const waiting = (this.#waiting = new AbortController());
    const options = steal ? { steal: true } : { signal: waiting.signal };
    navigator.locks
      .request(this.config.name, options, () => {
        if (this.#stopped) return undefined;
        this.#lead(true);
        return new Promise<void>((resolve) => (this.#release = resolve));
      })
      .catch(() => {
        // Aborted while it waited, or another tab took over.
        if (this.#stopped || waiting.signal.aborted) return;
        this.#lead(false);
        this.#queue();
      });
  }

  #lead(leads: boolean): void {
    if (this.leads === leads) return;
    this.leads = leads;
    this.config.lead(leads);
  }
}
