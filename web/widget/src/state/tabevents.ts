/**
 * Owns what this tab does with each event of another tab. The leader acts for all; the others show what the leader
 * tells.
 */
import { readMessage } from '@parley/shared/message.js';
import { readPart } from '@parley/shared/parts.js';
import type { Typing } from '@parley/shared/typing.js';
import type { History } from './history.js';
import type { Incoming } from './incoming.js';
import type { ReadCursor } from './readcursor.js';
import type { Realtime } from './realtime.js';
import type { Connection, Store } from './reducer.js';
import type { Sending } from './sending.js';
import type { Streaming } from './streaming.js';
import type { TabEvent, Tabs } from './tabs.js';

export interface TabEventsConfig {
  store: Store;
  tabs: Pick<Tabs, 'isLeader' | 'post'>;
  history: Pick<History, 'sync'>;
  incoming: Pick<Incoming, 'add' | 'show'>;
  readCursor: Pick<ReadCursor, 'onEvent'>;
  realtime: Pick<Realtime, 'sendTyping'>;
  sending: Pick<Sending, 'remove' | 'showOutbox'>;
  streaming: Pick<Streaming, 'apply'>;
  typing: Pick<Typing, 'heard'>;
  /** Another tab has ended the session, and deletes what is stored. */
  onEnded(): void;
}

export class TabEvents {
  constructor(readonly config: TabEventsConfig) {}

  handle(e: TabEvent): void {
    const { store, tabs, readCursor, realtime, sending, streaming, typing, onEnded } = this.config;
    switch (e.kind) {
      case 'message':
        return this.#onMessage(e.message, e.key);
      case 'part': {
        const part = readPart(e.part);
        return part && streaming.apply(part);
      }
      case 'progress':
        return store.dispatch({ type: 'progress', key: e.key, share: e.share });
      case 'cancel':
        return tabs.isLeader ? sending.remove(e.key) : sending.showOutbox();
      case 'connection':
        return tabs.isLeader ? undefined : this.#onConnection(e.connection as Connection);
      case 'typing':
        return typing.heard(e.name, e.at);
      case 'read':
        return readCursor.onEvent(e.read);
      case 'writing':
        return tabs.isLeader ? realtime.sendTyping() : undefined;
      case 'ended':
        return onEnded();
      case 'hello':
        return tabs.isLeader ? this.#welcome() : undefined;
    }
  }

  /** `key` is that of the outbox item which has become this message. */
  #onMessage(record: unknown, key: string | undefined): void {
    const { incoming, sending } = this.config;
    const m = readMessage(record);
    if (!m) return;
    if (key) sending.showOutbox(key);
    if (m.isFromSupport) incoming.add(m);
    else incoming.show(m);
  }

  #onConnection(connection: Connection): void {
    const { history, store } = this.config;
    if (connection === 'online' && store.state.connection !== 'online') void history.sync();
    store.dispatch({ type: 'connection', connection });
  }

  /** Tells a tab that has just started what only the leader knows. */
  #welcome(): void {
    const { store, tabs } = this.config;
    const { connection, streaming } = store.state;
    tabs.post({ kind: 'connection', connection });
    if (streaming) tabs.post({ kind: 'part', part: { ...streaming, offset: 0 } });
  }
}
