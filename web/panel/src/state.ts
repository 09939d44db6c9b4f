import { client } from './api/client.js';
import { live } from './api/live.js';
import { companies, session as api } from './api/api.js';
import type { Company, Meta, Permission, Session } from './api/types.js';
import { Store } from './lib/store.js';

export type Phase = 'starting' | 'failed' | 'signedOut' | 'signedIn';

interface App {
  phase: Phase;
  error?: unknown;
  meta?: Meta;
  session?: Session;
  /** All companies for an operator, the user's own company otherwise. */
  companies: Company[];
  /** The company shown in the sections. */
  company?: Company | undefined;
  /** Whether the session expired while the page was open. */
  expired?: boolean;
}

export const app = new Store<App>({ phase: 'starting', companies: [] });

const COMPANY_KEY = 'parley.panel.company';

export const can = (permission: Permission): boolean => !!app.value.session?.permissions.includes(permission);

export async function start(): Promise<void> {
  app.update((a) => ({ ...a, phase: 'starting', error: undefined }));
  try {
    const meta = await api.meta();
    app.update((a) => ({ ...a, meta }));
    let session: Session | undefined;
    client.onSignedOut = () => {};
    try {
      session = await api.current();
    } catch (err) {
      if (!(err && typeof err === 'object' && (err as { status?: number }).status === 401)) throw err;
    }
    if (session) await signedIn(session);
    else app.update((a) => ({ ...a, phase: 'signedOut' }));
  } catch (error) {
    app.update((a) => ({ ...a, phase: 'failed', error }));
  }
}

export async function signedIn(session: Session): Promise<void> {
  client.csrfToken = session.csrfToken;
  client.onSignedOut = () => signedOut(true);
  const all = session.company ? [session.company] : await companies.list();
  const chosen = session.company ?? all.find((c) => c.id === storedCompanyId()) ?? all[0];
  app.update((a) => ({ ...a, phase: 'signedIn', session, companies: all, expired: false }));
  selectCompany(chosen);
}

/** Selects a company. An operator works in one company at a time. */
export function selectCompany(company: Company | undefined): void {
  const operator = !app.value.session?.company;
  client.companyId = operator && company ? company.id : '';
  if (operator && company) {
    try {
      localStorage.setItem(COMPANY_KEY, company.id);
    } catch {
      // Storage is blocked: the selection lasts until the page is closed.
    }
  }
  app.update((a) => ({
    ...a,
    company,
    companies:
      company && !a.companies.some((c) => c.id === company.id)
        ? [...a.companies, company]
        : a.companies.map((c) => (c.id === company?.id ? company : c)),
  }));
}

export function updateSession(session: Session): void {
  client.csrfToken = session.csrfToken;
  app.update((a) => ({ ...a, session }));
}

export function signedOut(expired = false): void {
  if (app.value.phase === 'signedOut') return;
  live.stop();
  client.csrfToken = '';
  client.companyId = '';
  app.update((a) => ({ phase: 'signedOut', companies: [], expired, ...(a.meta && { meta: a.meta }) }));
}

function storedCompanyId(): string {
  try {
    return localStorage.getItem(COMPANY_KEY) ?? '';
  } catch {
    return '';
  }
}
