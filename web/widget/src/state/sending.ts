/**
 * Owns what the visitor sends: the outbox, how much of it is on the screen, and the largest file that the server takes.
 */
import type { Api, ApiError } from '@parley/shared/api.js';
import type { Choice, Message } from '@parley/shared/message.js';
import { Outbox } from './outbox.js';
import type { Store } from './reducer.js';
import type { Storage } from './storage.js';
import type { Tabs } from './tabs.js';

export interface SendingConfig {
  api: Pick<Api, 'send' | 'upload' | 'limits'>;
  store: Store;
  storage: Storage;
  tabs: Pick<Tabs, 'post' | 'checkLeader'>;
  /** Whether this tab may send, that is, leads and has a session. */
  maySend(): boolean;
  updateUnread(): void;
  /** Called before an accepted message is shown: the server has answered. */
  markAvailable(): void;
  /** Called after an accepted message is shown, here and in the other tabs. */
  onAccepted(m: Message): void;
  /** Called when the first item cannot be sent for now. */
  blocked(err: ApiError): void;
}

export class Sending {
  readonly #outbox: Outbox;
  #maxFileBytes: Promise<number> | undefined;

  constructor(readonly config: SendingConfig) {
    const { api, storage, maySend, blocked } = config;
    this.#outbox = new Outbox({
      storage,
      transport: api,
      maySend,
      blocked,
      changed: () => this.showOutbox(),
      accepted: (m, key) => this.#accepted(m, key),
      progress: (key, share) => this.#progressed(key, share),
    });
  }

  sendText(value: string): void {
    this.#outbox.add({ type: 'TEXT', data: { text: value } });
    this.#submitted();
  }

  choose(choice: Choice): void {
    this.#outbox.add({ type: 'MULTIPLE_CHOICE_REPLY', data: { ...choice } });
    this.#submitted();
  }

  async sendFile(file: File, caption: string): Promise<void> {
    await this.#outbox.addFile(file, file.name || 'file', caption);
    this.#submitted();
  }

  #submitted(): void {
    this.config.updateUnread();
    this.config.tabs.checkLeader(); // a live leader must send it
  }

  /** Sends again what the server has rejected. */
  retry(key: string): void {
    this.#outbox.retry(key);
  }

  discard(key: string): void {
    this.#outbox.remove(key);
    this.config.tabs.post({ kind: 'cancel', key });
  }

  /** Removes what another tab has discarded, and ends its upload. */
  remove(key: string): void {
    this.#outbox.remove(key);
  }

  /** Sends now instead of after the retry delay. */
  flush(): void {
    this.#outbox.flush();
  }

  get pending(): boolean {
    return this.#outbox.pending;
  }

  /**
   * Shows the stored outbox. `accepted` is the key of an item that another tab has sent: this tab's view of
   * localStorage may still contain it.
   */
  showOutbox(accepted?: string): void {
    const outbox = this.#outbox.items.filter((i) => i.key !== accepted);
    this.config.store.dispatch({ type: 'outbox', outbox });
  }

  #accepted(m: Message, key: string): void {
    const { store, tabs, markAvailable, onAccepted } = this.config;
    markAvailable();
    store.dispatch({ type: 'messages', messages: [m] });
    this.showOutbox();
    tabs.post({ kind: 'message', message: m, key });
    onAccepted(m);
  }

  #progressed(key: string, share: number): void {
    this.config.store.dispatch({ type: 'progress', key, share });
    this.config.tabs.post({ kind: 'progress', key, share });
  }

  /** The file size limit of the server; Infinity if unknown. Cached after the first request. */
  maxFileBytes(): Promise<number> {
    return (this.#maxFileBytes ??= this.config.api.limits().then(
      (l) => l.maxFileBytes || Infinity,
      () => {
        this.#maxFileBytes = undefined;
        return Infinity; // the server enforces the limit anyway
      },
    ));
  }

  stop(): void {
    this.#outbox.stop();
  }
}
