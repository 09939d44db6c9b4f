import { useEffect, useRef, useState } from 'preact/hooks';
import { applications as api } from '../api/api.js';
import type { BotCall, BotTest } from '../api/types.js';

export interface Test {
  /** Whether an answer is awaited. */
  busy: boolean;
  /** Why the last question could not be asked. A server that fails is an answer. */
  error: unknown;
  /** Returns the answer; undefined after an error or a stop. */
  ask(body: BotTest): Promise<BotCall | undefined>;
  /** Ends the wait. */
  stop(): void;
  /** Removes the error. */
  clear(): void;
}

/** Asks drafts of an application's bot, one question at a time. The wait ends with the component. */
export function useTest(appId: string): Test {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const running = useRef<AbortController>();
  const stop = () => running.current?.abort();
  useEffect(() => stop, []);

  const ask = async (body: BotTest) => {
    const wait = new AbortController();
    running.current = wait;
    setBusy(true);
    setError(undefined);
    try {
      return await api.testBot(appId, body, wait.signal);
    } catch (err) {
      if (!wait.signal.aborted) setError(err);
      return undefined;
    } finally {
      setBusy(false);
    }
  };
  return { busy, error, ask, stop, clear: () => setError(undefined) };
}
