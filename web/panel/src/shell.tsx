import type { ComponentType } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { session as api } from './api/api.js';
import { live } from './api/live.js';
import { initials } from './lib/format.js';
import { navigate, useRoute } from './lib/router.js';
import { useStore } from './lib/store.js';
import { CompanyDialog } from './people/company.js';
import { SignIn } from './signin/signin.js';
import { AcceptInvitation } from './signin/invitation.js';
import { app, can, selectCompany, signedOut, start } from './state.js';
import { strings } from './strings.js';
import { applyTheme, theme } from './theme.js';
import { Avatar, Empty, Failed, Skeleton } from './ui/states.js';
import { Button, IconButton } from './ui/button.js';
import { Glyph, type GlyphName } from './ui/icon.js';
import { Logo } from './ui/logo.js';
import { Menu } from './ui/menu.js';
import { Page, TitleBadge } from './ui/page.js';
import { Toasts } from './ui/toast.js';
import { counts, formatCount, refreshCounts, startCounts } from './counts.js';
import { assigns, showAssigned } from './inbox/assigned.js';
import type { Company, Permission } from './api/types.js';

interface Section {
  path: string;
  label: string;
  icon: GlyphName;
  permission: Permission | undefined;
  /** Whether the section needs a company. An operator may have none yet. */
  company: boolean;
  hidden?: boolean;
  load(): Promise<{ default: ComponentType }>;
}

const sections: Section[] = [
  {
    path: 'inbox',
    label: strings.nav.inbox,
    icon: 'inbox',
    permission: 'inbox',
    company: true,
    load: () => import('./inbox/inbox.js'),
  },
  {
    path: 'applications',
    label: strings.nav.applications,
    icon: 'window',
    permission: 'applications.read',
    company: true,
    load: () => import('./applications/applications.js'),
  },
  {
    path: 'documents',
    label: strings.nav.documents,
    icon: 'book',
    permission: 'applications.write',
    company: true,
    load: () => import('./documents/documents.js'),
  },
  {
    path: 'templates',
    label: strings.nav.templates,
    icon: 'template',
    permission: 'templates.read',
    company: true,
    load: () => import('./templates/templates.js'),
  },
  {
    path: 'tokens',
    label: strings.nav.tokens,
    icon: 'key',
    permission: 'tokens',
    company: true,
    load: () => import('./tokens/tokens.js'),
  },
  {
    path: 'webhooks',
    label: strings.nav.webhooks,
    icon: 'webhook',
    permission: 'webhooks',
    company: true,
    load: () => import('./webhooks/webhooks.js'),
  },
  {
    path: 'people',
    label: strings.nav.people,
    icon: 'people',
    permission: 'people',
    company: false,
    load: () => import('./people/people.js'),
  },
  {
    path: 'visitors',
    label: strings.nav.visitors,
    icon: 'shield',
    permission: 'visitors',
    company: true,
    load: () => import('./people/visitors.js'),
  },
  {
    path: 'audit',
    label: strings.nav.audit,
    icon: 'history',
    permission: 'audit',
    company: true,
    load: () => import('./people/audit.js'),
  },
  {
    path: 'streams',
    label: strings.nav.streams,
    icon: 'streams',
    permission: 'streams',
    company: false,
    load: () => import('./streams/streams.js'),
  },
  {
    path: 'account',
    label: strings.nav.account,
    icon: 'account',
    permission: undefined,
    company: false,
    hidden: true,
    load: () => import('./account/account.js'),
  },
];

const loaded = new Map<string, ComponentType>();

export function App() {
  const { phase, error, expired } = useStore(app);
  const route = useRoute();
  return (
    <>
      {phase === 'starting' && (
        <div class="boot" role="status" aria-label={strings.loading}>
          <Logo />
        </div>
      )}
      {phase === 'failed' && (
        <main class="boot">
          <Failed error={error} retry={() => void start()} />
        </main>
      )}
      {route.parts[0] === 'invitation' && phase !== 'starting' && phase !== 'failed' ? (
        <AcceptInvitation token={route.parts[1] ?? ''} />
      ) : (
        <>
          {phase === 'signedOut' && <SignIn expired={!!expired} />}
          {phase === 'signedIn' && <Shell />}
        </>
      )}
      <Toasts />
    </>
  );
}

function Shell() {
  const { session, company, companies } = useStore(app);
  const route = useRoute();
  const count = useStore(counts).attention;
  const liveState = useStore(live.state);
  const [drawer, setDrawer] = useState(false);
  const [creating, setCreating] = useState(false);
  const [online, setOnline] = useState(navigator.onLine);
  const main = useRef<HTMLElement>(null);
  const operator = !session!.company;

  useEffect(() => {
    const on = () => setOnline(navigator.onLine);
    addEventListener('online', on);
    addEventListener('offline', on);
    return () => {
      removeEventListener('online', on);
      removeEventListener('offline', on);
    };
  }, []);

  // Live events and the count of unread chats belong to the selected company.
  useEffect(() => {
    if (!can('inbox') || !company) return;
    live.start();
    const stops = [
      startCounts(),
      live.on('chat', (e) => assigns(e, session!.user.id) && void showAssigned(e).catch(() => {})),
    ];
    refreshCounts();
    return () => {
      stops.forEach((stop) => stop());
      live.stop();
    };
  }, [company?.id]);

  const allowed = sections.filter((s) => s.permission === undefined || can(s.permission));
  const current = allowed.find((s) => s.path === route.parts[0]);
  const first = allowed.find((s) => s.path === 'inbox') ?? allowed[0]!;
  useEffect(() => {
    if (!route.parts[0]) navigate('/' + first.path, { replace: true });
    setDrawer(false);
  }, [route.path]);

  // Focus the main element when the section changes, so that screen readers read the new section from its heading.
  const section = route.parts[0];
  const before = useRef(section);
  useEffect(() => {
    if (before.current !== section) main.current?.focus();
    before.current = section;
  }, [section]);

  useEffect(() => {
    if (!drawer) return;
    const closeOnEscape = (e: KeyboardEvent) => e.key === 'Escape' && setDrawer(false);
    addEventListener('keydown', closeOnEscape);
    return () => removeEventListener('keydown', closeOnEscape);
  }, [drawer]);

  /** Leaves the open item first, because it does not exist in the other company. */
  const open = (c: Company) => {
    if (c.id === company?.id) return;
    navigate('/' + (current ?? first).path);
    selectCompany(c);
  };
  const signOut = async () => {
    await api.signOut().catch(() => {});
    signedOut();
    navigate('/', { replace: true });
  };
  const user = session!.user;
  return (
    <div class={drawer ? 'shell drawer' : 'shell'}>
      <TitleBadge unread={count} />
      <header class="topbar">
        <IconButton icon="menu" label={strings.nav.open} aria-expanded={drawer} onClick={() => setDrawer(!drawer)} />
        <span>{current?.label ?? strings.product}</span>
        {count > 0 && current?.path !== 'inbox' && (
          <a class="topbadge" href="#/inbox">
            {strings.unreadChats(count)}
          </a>
        )}
      </header>
      <div class="scrim" onClick={() => setDrawer(false)} />
      <nav class="nav" aria-label={strings.nav.label}>
        <a
          class="skip"
          href="#/"
          onClick={(e) => {
            e.preventDefault();
            main.current?.focus();
          }}
        >
          {strings.skip}
        </a>
        <div class="brand">
          <Logo />
          {operator ? (
            <Menu
              label={strings.nav.company(company?.name ?? strings.noCompany)}
              class="company"
              up={false}
              items={[
                ...companies.map((c) => ({ label: c.name, checked: c.id === company?.id, act: () => open(c) })),
                can('companies') && {
                  label: strings.people.newCompany,
                  icon: 'plus' as const,
                  act: () => setCreating(true),
                },
              ]}
            >
              <span>{company?.name ?? strings.noCompany}</span>
              <Glyph name="down" size={16} />
            </Menu>
          ) : (
            <span class="company fixed">
              <span>{company?.name}</span>
            </span>
          )}
        </div>
        <ul>
          {allowed
            .filter((s) => !s.hidden)
            .map((s) => (
              <li key={s.path}>
                <a href={`#/${s.path}`} aria-current={current === s ? 'page' : undefined} title={s.label}>
                  <Glyph name={s.icon} />
                  <span>{s.label}</span>
                  {s.path === 'inbox' && count > 0 && (
                    <span class="count" aria-label={strings.unreadChats(count)}>
                      {formatCount(count)}
                    </span>
                  )}
                </a>
              </li>
            ))}
        </ul>
        <Menu
          up
          named
          label={strings.nav.user}
          class="me"
          items={[
            { label: strings.nav.account, icon: 'account', act: () => navigate('/account') },
            {
              label: strings.theme.auto,
              icon: 'display',
              checked: theme.value === 'auto',
              act: () => applyTheme('auto'),
            },
            {
              label: strings.theme.light,
              icon: 'sun',
              checked: theme.value === 'light',
              act: () => applyTheme('light'),
            },
            { label: strings.theme.dark, icon: 'moon', checked: theme.value === 'dark', act: () => applyTheme('dark') },
            { label: strings.signOut, icon: 'logout', act: () => void signOut() },
          ]}
        >
          <Avatar name={user.id} letters={initials(user.name || user.email)} size="small" />
          <span class="me-text">
            <b>{user.name || user.email}</b>
            <small>
              {strings.roles[user.role]}
              <span class="sr">, {strings.nav.user}</span>
            </small>
          </span>
          <Glyph name="up" size={16} />
        </Menu>
      </nav>
      <div class="main">
        {!online && (
          <p class="offline" role="status">
            <Glyph name="alert" size={16} />
            {strings.offline}
          </p>
        )}
        {online && liveState === 'lost' && current?.path === 'inbox' && (
          <p class="offline" role="status">
            <Glyph name="alert" size={16} />
            {strings.notLive}
          </p>
        )}
        <main ref={main} id="main" tabIndex={-1} class={current?.path === 'inbox' ? 'fill' : undefined}>
          {!current && route.parts[0] && (
            <Page title={strings.notFound}>
              <Empty
                icon="search"
                title={strings.notFound}
                action={
                  <a class="btn secondary" href={`#/${first.path}`}>
                    <span>{first.label}</span>
                  </a>
                }
              >
                {strings.notFoundLead}
              </Empty>
            </Page>
          )}
          {current &&
            (current.company && !company ? (
              <Page title={current.label}>
                <Empty
                  icon="building"
                  title={strings.noCompanyYet}
                  action={
                    can('companies') && (
                      <Button kind="primary" icon="plus" onClick={() => setCreating(true)}>
                        {strings.people.newCompany}
                      </Button>
                    )
                  }
                >
                  {strings.noCompanyLead}
                </Empty>
              </Page>
            ) : (
              <SectionView key={`${current.path} ${company?.id}`} section={current} />
            ))}
        </main>
      </div>
      {creating && <CompanyDialog close={() => setCreating(false)} />}
    </div>
  );
}

/** Loads the code of a section on its first display. */
function SectionView({ section }: { section: Section }) {
  const [, draw] = useState(0);
  const [error, setError] = useState<unknown>();
  const [round, again] = useState(0);
  const View = loaded.get(section.path);
  useEffect(() => {
    if (View) return;
    let current = true;
    setError(undefined);
    section.load().then(
      (m) => {
        loaded.set(section.path, m.default);
        if (current) draw((n) => n + 1);
      },
      (err: unknown) => current && setError(err),
    );
    return () => {
      current = false;
    };
  }, [section, round]);
  if (View) return <View />;
  if (error)
    return (
      <div class="page">
        <Failed error={error} retry={() => again((n) => n + 1)} />
      </div>
    );
  return (
    <div class="page">
      <Skeleton />
    </div>
  );
}
