import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '@parley/shared/api.js';
import type { Data, Message } from '@parley/shared/message.js';
import { Outbox, type OutboxConfig } from '../src/state/outbox.js';
import { Storage } from '../src/state/storage.js';

/** Fake localStorage of one origin; shared by successive pages. */
class FakeStorage extends Map<string, string> {
  getItem = (k: string) => this.get(k) ?? null;
  setItem = (k: string, v: string) => void this.set(k, v);
  removeItem = (k: string) => void this.delete(k);
}
const fakeLocalStorage = () =>
  new Proxy(new FakeStorage(), {
    ownKeys: (m) => [...m.keys()],
    getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }),
    get: (m, k) => Reflect.get(m, k),
  }) as unknown as globalThis.Storage;

/** Fake server: idempotent by key like the Widget API, with scripted failures. */
class Server {
  accepted = new Map<string, string>();
  order: string[] = [];
  failures: (ApiError | 'lost')[] = [];
  async send(body: Data, key: string): Promise<Message> {
    const failure = this.failures.shift();
    if (failure instanceof ApiError) throw failure;
    const text = String((body.data as Data).text);
    if (!this.accepted.has(key)) this.order.push(text);
    this.accepted.set(key, text);
    if (failure === 'lost') throw new ApiError(0, 'NETWORK', 'response lost');
    return {
      id: key,
      createdAt: new Date().toISOString(),
      type: 'TEXT',
      data: { text },
      nameOfSender: 'Ada',
      isFromSupport: false,
    };
  }
  upload(): never {
    throw new Error('unexpected upload');
  }
}

interface Page {
  outbox: Outbox;
  accepted: string[];
  idle(): Promise<void>;
  runTimers(): void;
}

function page(local: globalThis.Storage, server: Server, more: Partial<OutboxConfig> = {}): Page {
  const accepted: string[] = [];
  let timers: (() => void)[] = [];
  const outbox = new Outbox({
    storage: new Storage('parley.app', local, undefined),
    transport: server,
    maySend: () => true,
    changed() {},
    progress() {},
    blocked() {},
    accepted: (m) => accepted.push(String(m.data.text)),
    setTimeout: ((f: () => void) => timers.push(f)) as unknown as typeof setTimeout,
    ...more,
  });
  return {
    outbox,
    accepted,
    idle: () => new Promise((done) => setImmediate(() => setImmediate(done))),
    runTimers() {
      const due = timers;
      timers = [];
      due.forEach((f) => f());
    },
  };
}
const text = (t: string) => ({ type: 'TEXT' as const, data: { text: t } });
const down = (status = 0) => new ApiError(status, 'DOWN', 'down');

test('delivers messages once and in order despite lost responses and server failures', async () => {
  const server = new Server();
  const p = page(fakeLocalStorage(), server);
  server.failures = [down(), 'lost', down(503), 'lost'];
  for (const t of ['a', 'b', 'c']) p.outbox.add(text(t));
  for (let i = 0; i < 8; i++) {
    await p.idle();
    p.runTimers();
  }
  assert.deepEqual(server.order, ['a', 'b', 'c']);
  assert.deepEqual(p.accepted, ['a', 'b', 'c']);
  assert.equal(p.outbox.items.length, 0);
});

test('an unsent message survives a reload and is delivered once', async () => {
  const local = fakeLocalStorage();
  const server = new Server();
  const first = page(local, server);
  server.failures = ['lost'];
  first.outbox.add(text('written before the reload'));
  await first.idle();
  first.outbox.stop();
  const second = page(local, server);
  assert.equal(second.outbox.items.length, 1);
  second.outbox.flush();
  await second.idle();
  assert.deepEqual(server.order, ['written before the reload']);
  assert.deepEqual(second.accepted, ['written before the reload']);
});

test('a rejected message waits for a manual retry and does not block the next one', async () => {
  const server = new Server();
  const p = page(fakeLocalStorage(), server);
  server.failures = [new ApiError(400, 'VALIDATION_ERROR', 'no')];
  p.outbox.add(text('refused'));
  p.outbox.add(text('next'));
  await p.idle();
  assert.deepEqual(server.order, ['next']);
  const [item] = p.outbox.items;
  assert.equal(item?.failed, 'VALIDATION_ERROR');
  p.outbox.retry(item!.key);
  await p.idle();
  assert.deepEqual(server.order, ['next', 'refused']);
  assert.notEqual([...server.accepted.keys()][1], item!.key, 'a rejected key is not reused');
});

test('a message that may have been delivered is not resent after its key has expired', async () => {
  const server = new Server();
  let now = 1_000;
  const p = page(fakeLocalStorage(), server, { now: () => now });
  server.failures = ['lost'];
  p.outbox.add(text('a day ago'));
  await p.idle();
  now += 24 * 3600_000;
  p.runTimers();
  await p.idle();
  assert.equal(p.outbox.items[0]?.failed, 'TOO_OLD');
  assert.deepEqual(server.order, ['a day ago']);
});

test('a message waits while the session is unauthorised, and a removed one is not sent', async () => {
  const server = new Server();
  const blocked: number[] = [];
  const p = page(fakeLocalStorage(), server, { blocked: (e) => blocked.push(e.status) });
  server.failures = [down(401)];
  p.outbox.add(text('mine'));
  await p.idle();
  assert.deepEqual([blocked, p.outbox.items.length, p.outbox.items[0]?.failed], [[401], 1, undefined]);
  p.outbox.remove(p.outbox.items[0]!.key);
  await p.idle();
  assert.deepEqual(server.order, []);
});
