import { useState } from 'preact/hooks';
import { fieldErrors } from '../api/client.js';

export interface Submit {
  /** Whether the action is running. */
  busy: boolean;
  /** The error of the last attempt. Each attempt clears it. */
  error: unknown;
  /** The same error by field, for the fields that show it. */
  errors: Record<string, string>;
  /** Whether a submit was attempted since the last success. Fields show what is missing only then. */
  tried: boolean;
  submit(e?: Event): void;
}

/** The state of a form. It runs the action only if the input is valid, and never twice at once. */
export function useSubmit(action: () => Promise<unknown>, valid = true): Submit {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const [tried, setTried] = useState(false);
  const run = async () => {
    setTried(true);
    if (busy || !valid) return;
    setBusy(true);
    setError(undefined);
    try {
      await action();
      setTried(false);
    } catch (err) {
      setError(err);
    } finally {
      setBusy(false);
    }
  };
  const submit = (e?: Event) => {
    e?.preventDefault();
    void run();
  };
  return { busy, error, errors: fieldErrors(error), tried, submit };
}
