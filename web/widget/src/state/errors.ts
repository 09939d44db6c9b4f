/** Reports errors to the page: as the `error` event, and on the console what only the site's developer can correct. */
import { ApiError } from '@parley/shared/api.js';
import type { Host } from '../host.js';

export class ErrorReport {
  /** What the console has said. It says each thing once. */
  readonly #logged = new Set<string>();

  constructor(readonly host: Pick<Host, 'appId' | 'emit'>) {}

  /** `log` is false for a visitor's mistake in the form, which is not for the developer. */
  report(err: unknown, log = true): void {
    const e = err instanceof ApiError ? err : undefined;
    if (log && e && [400, 403, 404].includes(e.status)) this.#log(e);
    this.host.emit('error', {
      code: e?.code ?? 'INTERNAL',
      status: e?.status ?? 0,
      message: e?.message ?? String(err),
    });
  }

  #log(e: ApiError): void {
    const reason = `Parley ${this.host.appId} on ${location.origin}: ${e.code} ${e.message}`;
    if (this.#logged.has(reason)) return;
    this.#logged.add(reason);
    console.error(reason);
  }
}
