/** Owns the answer that a bot is writing: shows its parts as they arrive, and ends it when no more come. */
import { type Api, ApiError } from '@parley/shared/api.js';
import type { Part } from '@parley/shared/parts.js';
import type { Store } from './reducer.js';

/** Time without a part after which a stream counts as ended. Longer than the server's timeout for the bot. */
const STREAM_TIMEOUT = 40_000;
/** Time for the final message to arrive after the last part. */
const FINAL_MESSAGE_TIMEOUT = 5_000;

export interface StreamingConfig {
  api: Pick<Api, 'stop'>;
  store: Store;
  reportError(err: unknown): void;
}

export class Streaming {
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly config: StreamingConfig) {}

  apply(part: Part): void {
    const { store } = this.config;
    const before = store.state.streaming;
    store.dispatch({ type: 'part', part });
    const { streaming } = store.state;
    if (!streaming || streaming === before) return;
    const { messageId, done } = streaming;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(
      () => store.dispatch({ type: done ? 'streamDropped' : 'streamStalled', messageId }),
      done ? FINAL_MESSAGE_TIMEOUT : STREAM_TIMEOUT,
    );
  }

  /** Stops the bot at the visitor's wish; the text received so far stays. */
  stop(): void {
    const id = this.config.store.state.streaming?.messageId;
    if (id) void this.config.api.stop(id).catch((err: unknown) => this.#stopFailed(err));
  }

  #stopFailed(err: unknown): void {
    const over = err instanceof ApiError && (err.status === 404 || err.status === 409);
    if (!over) this.config.reportError(err);
  }

  clear(): void {
    clearTimeout(this.#timer);
  }
}
