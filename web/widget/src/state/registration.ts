/**
 * Owns who the visitor is: the fields of the form, the site's identity, the registration and the renewal of its token.
 */
import { type Api, ApiError } from '@parley/shared/api.js';
import type { Data } from '@parley/shared/message.js';
import type { Host, Identity } from '../host.js';
import type { Store } from './reducer.js';
import type { Storage } from './storage.js';
import { visitorOf } from './token.js';

export interface RegistrationConfig {
  host: Host;
  api: Pick<Api, 'register' | 'token'>;
  store: Store;
  storage: Storage;
  /** Aborted when the widget is destroyed. */
  destroyed: AbortSignal;
  beginSession(token: string): void;
  endSession(): void;
  reportError(err: unknown, log: boolean): void;
  /** The application does not exist, or does not allow this site. */
  refuse(): void;
}

export class Registration {
  /** The request that has begun this session, with the proof of the identity, which is not stored. */
  #request: Data | undefined;
  #fingerprint = '';

  constructor(readonly config: RegistrationConfig) {}

  /** The form fields from the settings, without those that the site's identity provides. */
  get formFields(): { name: string; required: boolean }[] {
    const c = this.config.store.state.settings?.widgetConfigs ?? {};
    const required = stringList(c.requiredFields);
    const given = this.config.host.identity ?? {};
    return [...new Set([...stringList(c.formInputs), ...required])]
      .filter((name) => !given[name])
      .map((name) => ({ name, required: required.includes(name) }));
  }

  /**
   * Registers without the form, after the chat is opened: if it has no fields, or with an identity, no required ones.
   */
  async registerSilently(): Promise<boolean> {
    const { host, store } = this.config;
    if (!store.state.open) return false;
    const fields = this.formFields;
    if (fields.some((f) => f.required)) return false;
    if (!host.identity && fields.length) return false;
    return this.register({});
  }

  async register(fields: Data): Promise<boolean> {
    const { api, store, destroyed } = this.config;
    const body = this.#requestOf(fields);
    store.dispatch({ type: 'form', form: { busy: true, errors: {}, problem: '' } });
    try {
      const token = await api.register(body);
      if (destroyed.aborted) return false;
      this.#registered(token, body);
      return true;
    } catch (err) {
      if (!destroyed.aborted) this.#failed(err);
      return false;
    }
  }

  #requestOf(fields: Data): Data {
    const { host } = this.config;
    const body: Data = {
      language: host.language,
      ...withoutEmpty(host.identity ?? {}),
      ...withoutEmpty(fields),
      appId: host.appId,
    };
    if (!body.email && !body.phone && !body.userId && !body.identityToken) body.userId = `web-${crypto.randomUUID()}`;
    return body;
  }

  #registered(token: string, body: Data): void {
    const { host, store, storage, beginSession } = this.config;
    this.#fingerprint = fingerprint(host.identity);
    storage.update({
      token,
      registration: { ...body, userHash: undefined, identityToken: undefined },
      fingerprint: this.#fingerprint || undefined,
      unreadCount: 0,
      pending: true,
      recovery: undefined,
    });
    beginSession(token);
    this.#request = body;
    store.dispatch({ type: 'phase', phase: 'chat' });
    host.emit('registered', { chatUserId: visitorOf(token) });
  }

  #failed(err: unknown): void {
    const { store, reportError, refuse } = this.config;
    const e = err instanceof ApiError ? err : undefined;
    const details = e?.details ?? [];
    const asked = this.formFields.map((f) => f.name);
    const visitorsMistake = details.length > 0 && details.every((d) => asked.includes(d.field));
    reportError(err, !visitorsMistake);
    if (e?.status === 403 || e?.status === 404) return refuse();
    const errors = Object.fromEntries(details.map((d) => [d.field, d.message]));
    const problem = e?.isTemporary === false ? 'loadFailed' : 'unavailable';
    store.dispatch({ type: 'phase', phase: 'form' });
    store.dispatch({ type: 'form', form: { busy: false, errors, problem } });
  }

  /** Applies the identity that the site has passed. A session with a different identity ends. */
  identify(): void {
    const { host, api, store, storage, endSession } = this.config;
    if (!api.token) {
      if (store.state.phase === 'form') void this.registerSilently();
      return;
    }
    const now = fingerprint(host.identity);
    if (!now || now === (this.#fingerprint || storage.session().fingerprint)) return;
    endSession();
    void this.register({});
  }

  /** The fields with which the visitor can be registered again without the form; undefined if they are unknown. */
  get known(): Data | undefined {
    return this.#request ?? (this.config.host.identity && {});
  }

  /** Requests a token that renews the one of this session; empty if there is none. */
  async renew(): Promise<string> {
    const { host, api, storage } = this.config;
    const known = this.#request ?? storage.session().registration ?? host.identity;
    if (!known) return '';
    const body = { ...known, ...withoutEmpty(host.identity ?? {}), appId: host.appId };
    const token = await api.register(body, api.token).catch(() => '');
    // Another visitor: the application requires an identity proof that is missing here. The old token stays.
    return visitorOf(token) === visitorOf(api.token) ? token : '';
  }

  /** Forgets the request of a session that has ended. */
  reset(): void {
    this.#request = undefined;
  }
}

const stringList = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((v): v is string => typeof v === 'string' && v !== '') : [];

function withoutEmpty(fields: Record<string, unknown>): Data {
  return Object.fromEntries(Object.entries(fields).filter(([, v]) => v !== undefined && v !== null && v !== ''));
}

/** A hash of the identity (FNV-1a, 32 bits), to detect a change without storing the identity. */
function fingerprint(identity: Identity | undefined): string {
  const id = identity?.userId ?? identity?.email ?? identity?.phone ?? '';
  if (!id) return '';
  let h = 0x811c9dc5;
  for (const c of String(id)) h = Math.imul(h ^ c.codePointAt(0)!, 0x01000193) >>> 0;
  return h.toString(36);
}
