/** Loads the application's settings, which decide what the visitor sees first, and tries again after a failure. */
import { type Api, ApiError } from '@parley/shared/api.js';
import type { Host } from '../host.js';
import type { Store } from './reducer.js';

const RETRY_DELAY = 5_000;

export interface SettingsConfig {
  host: Host;
  api: Pick<Api, 'settings' | 'token'>;
  store: Store;
  /** Aborted when the widget is destroyed. */
  destroyed: AbortSignal;
  /** Registers the visitor if that takes no form. Returns whether the visitor is registered. */
  registerSilently(): Promise<boolean>;
  reportError(err: unknown): void;
  /** The application does not exist, or does not allow this site. */
  refuse(): void;
}

export class SettingsLoader {
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly config: SettingsConfig) {}

  async load(): Promise<void> {
    clearTimeout(this.#timer);
    try {
      await this.#load();
    } catch (err) {
      if (!this.config.destroyed.aborted) this.#failed(err);
    }
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  async #load(): Promise<void> {
    const { host, api, store, destroyed, registerSilently } = this.config;
    const early = host.settingsAnswer;
    host.settingsAnswer = undefined;
    const settings = await api.settings(host.appId, await early);
    if (destroyed.aborted) return;
    store.dispatch({ type: 'settings', settings });
    if (api.token) return store.dispatch({ type: 'phase', phase: 'chat' });
    if (await registerSilently()) return;
    const { phase, notice } = store.state;
    if (phase !== 'form') store.dispatch({ type: 'phase', phase: 'form', ...(notice && { notice }) });
  }

  #failed(err: unknown): void {
    this.config.reportError(err);
    if (err instanceof ApiError && (err.status === 403 || err.status === 404)) return this.config.refuse();
    this.config.store.dispatch({ type: 'phase', phase: 'failed' });
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.load(), RETRY_DELAY);
  }
}
