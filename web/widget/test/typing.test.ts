import assert from 'node:assert/strict';
import { test } from 'node:test';
import { throttle, Typing, TYPING_TTL, type Clock } from '@parley/shared/typing.js';

/** A fake clock, advanced manually. */
class FakeClock implements Clock {
  at = 0;
  timers = new Map<number, { due: number; act: () => void }>();
  #next = 1;
  now = () => this.at;
  set = (act: () => void, ms: number) => {
    this.timers.set(this.#next, { due: this.at + ms, act });
    return this.#next++;
  };
  clear = (timer: unknown) => void this.timers.delete(timer as number);
  advance(ms: number) {
    const end = this.at + ms;
    for (;;) {
      const [id, next] = [...this.timers].sort((a, b) => a[1].due - b[1].due)[0] ?? [];
      if (!next || next.due > end) break;
      this.timers.delete(id!);
      this.at = next.due;
      next.act();
    }
    this.at = end;
  }
}

const time = (s: number) => new Date(1_700_000_000_000 + s * 1000).toISOString();

function setup() {
  const clock = new FakeClock();
  const seen: string[] = [];
  const typing = new Typing((names) => seen.push(names.join('+')), clock);
  return { clock, seen, typing };
}

test('a typing indicator expires without an event', () => {
  const { clock, seen, typing } = setup();
  typing.heard('Nora', time(0));
  clock.advance(TYPING_TTL - 1);
  assert.deepEqual(typing.names, ['Nora']);
  clock.advance(1);
  assert.deepEqual(typing.names, []);
  assert.deepEqual(seen, ['Nora', '']);
  assert.equal(clock.timers.size, 0, 'no timer is left');
});

test('typing events extend the indicator, and each name expires separately', () => {
  const { clock, seen, typing } = setup();
  typing.heard('Nora', time(0));
  clock.advance(2_000);
  typing.heard('Jo', time(2));
  clock.advance(2_000);
  typing.heard('Nora', time(4));
  clock.advance(5_000);
  assert.deepEqual(typing.names, ['Nora']);
  clock.advance(1_000);
  assert.deepEqual(seen, ['Nora', 'Nora+Jo', 'Nora', '']);
});

test('a message ends typing, even if an earlier typing event arrives after it', () => {
  const { typing, clock } = setup();
  typing.heard('Nora', time(0));
  typing.message(time(3));
  assert.deepEqual(typing.names, []);
  typing.heard('Nora', time(2)); // sent before the message, received after it
  typing.heard('Nora', time(3));
  assert.deepEqual(typing.names, []);
  typing.heard('Nora', time(4)); // typing of the next message
  assert.deepEqual(typing.names, ['Nora']);
  typing.message(time(1)); // an old message, loaded with the history
  assert.deepEqual(typing.names, ['Nora']);
  clock.advance(TYPING_TTL);
  assert.deepEqual(typing.names, []);
});

test('throttles typing events to one per pause', () => {
  let now = 0;
  let calls = 0;
  const send = throttle(
    () => calls++,
    2_500,
    () => now,
  );
  for (; now < 10_000; now += 100) send();
  assert.equal(calls, 4);
});
