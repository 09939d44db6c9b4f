import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { applications, chats as api, type ChatFilter } from '../api/api.js';
import { live } from '../api/live.js';
import type { Agent, Application, Chat } from '../api/types.js';
import { formatDuration, formatFull, formatShort, initials } from '../lib/format.js';
import { useLoad } from '../lib/load.js';
import { navigate, setQuery, useRoute } from '../lib/router.js';
import { useStore } from '../lib/store.js';
import { app } from '../state.js';
import { strings } from '../strings.js';
import { Button, IconButton } from '../ui/button.js';
import { Checkbox, Field, Segmented, Select } from '../ui/field.js';
import { Glyph } from '../ui/icon.js';
import { useTitle } from '../ui/page.js';
import { Avatar, Empty, Failed, Skeleton } from '../ui/states.js';
import { toast } from '../ui/toast.js';
import { VirtualList } from '../ui/virtual.js';
import { alerts, canNotify, chime, notify, requestDesktop, setAlerts } from './alerts.js';
import { ConversationView } from './view.js';
import { lineOf } from './line.js';
import { ChatList } from './list.js';
import { undoClose } from './closing.js';
import { counts } from '../counts.js';
import { Dialog } from '../ui/dialog.js';

const s = strings.inbox;

export const ROW_HEIGHT = 76;

type View = 'open' | 'waiting' | 'unread' | 'mine' | 'closed';

function filterOf(query: URLSearchParams): ChatFilter {
  const view = (query.get('view') ?? 'open') as View;
  const get = (key: string) => query.get(key) ?? '';
  return {
    status: view === 'closed' ? 'closed' : get('pending') ? 'pending' : 'open',
    ...(view === 'unread' && { unread: true, control: 'agent' }),
    ...(view === 'waiting' && { waiting: true }),
    ...(view === 'mine' ? { assignee: 'me' } : view !== 'waiting' && get('assignee') && { assignee: get('assignee') }),
    ...(get('app') && { appId: get('app') }),
    ...(view !== 'waiting' && view !== 'unread' && get('control') && { control: get('control') }),
    ...(get('q') && { q: get('q') }),
  };
}

export default function Inbox() {
  const route = useRoute();
  const me = app.value.session!.user;
  const chatId = route.parts[0] === 'inbox' ? (route.parts[1] ?? '') : '';
  const agents = useLoad((signal) => api.agents(signal), []).data ?? [];
  const apps = useLoad((signal) => applications.list(signal), []).data ?? [];
  const liveState = useStore(live.state);
  const tabCounts: Partial<Record<View, number>> = useStore(counts);
  const [help, setHelp] = useState(false);
  const [filters, setFilters] = useState(false);
  const query = route.query.toString();
  const searchInput = useRef<HTMLInputElement>(null);
  const [, tick] = useState(0);
  useTitle(strings.nav.inbox);

  // The ChatList outlives each render, so it reads the current values through a ref.
  const now = useRef({ chatId, agents, apps });
  now.current = { chatId, agents, apps };

  const list = useMemo(
    () =>
      new ChatList({
        load: api.list,
        get: api.get,
        me: me.id,
        agentName: (id) => now.current.agents.find((a) => a.id === id)?.name ?? (id === me.id ? me.name : s.somebody),
        current: () => now.current.chatId,
        seen: (id) => id === now.current.chatId && document.hasFocus(),
      }),
    [],
  );
  const state = useStore(list.state);

  useEffect(() => list.show(filterOf(route.query)), [query]);
  useEffect(() => list.prune(), [chatId]);
  useEffect(() => () => list.stop(), []);
  useEffect(() => {
    const stops = [
      live.on('message', (e) => {
        const known = list.find(e.chatId);
        const isNew = !known?.lastMessage || known.lastMessage.id !== e.message.id;
        list.onMessage(e);
        if (!e.message.isFromSupport) undoClose(e.chatId);
        if (e.message.isFromSupport || !isNew || live.state.value !== 'live') return;
        if (!(e.chatId === now.current.chatId && document.hasFocus())) chime();
        notify(known?.visitor.name ?? e.message.nameOfSender, e.message, e.chatId);
      }),
      live.on('chat', (e) => list.onChat(e)),
      live.on('registered', (e) => list.onRegistered(e)),
      live.on('rated', (e) => list.onRated(e)),
      live.on('read', (e) => list.onRead(e)),
      live.on('reset', () => list.reload()),
    ];
    const minute = setInterval(() => tick((n) => n + 1), 30_000);
    return () => {
      stops.forEach((stop) => stop());
      clearInterval(minute);
    };
  }, []);

  const open = (id: string) => navigate(`/inbox/${id}${query ? `?${query}` : ''}`);
  const step = (by: number) => {
    const { items } = state;
    const at = items.findIndex((c) => c.id === chatId);
    const next = items[at < 0 ? 0 : at + by];
    if (next) open(next.id);
  };

  // Single-key shortcuts, except while an input has the focus.
  useEffect(() => {
    const keys = (e: KeyboardEvent) => {
      const at = e.target as HTMLElement;
      if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented || !alerts.value.keys) return;
      if (/^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName) || document.querySelector('dialog[open], .menu:popover-open'))
        return;
      const act = {
        j: () => step(1),
        k: () => step(-1),
        '/': () => searchInput.current?.focus(),
        '?': () => setHelp(true),
        u: () => navigate('/inbox'),
      }[e.key];
      if (!act) return;
      e.preventDefault();
      act();
    };
    addEventListener('keydown', keys);
    return () => removeEventListener('keydown', keys);
  });

  const view = (route.query.get('view') ?? 'open') as View;
  const active = ['app', 'assignee', 'control', 'pending'].filter((k) => route.query.get(k)).length;
  const idle = view === 'waiting' && !['app', 'pending', 'q'].some((k) => route.query.get(k));
  const filtered = active > 0 || !!route.query.get('q') || view !== 'open';

  return (
    <div class={chatId ? 'inbox has-chat' : 'inbox'}>
      <h1 class="sr">{strings.nav.inbox}</h1>
      <section class="chats" aria-label={s.chats}>
        <header class="chats-head">
          <div class="chats-title">
            <span class="chats-name" aria-hidden="true">
              {strings.nav.inbox}
            </span>
            <LiveMark state={liveState} />
            <span class="grow-1" />
            <AlertsMenu />
            <IconButton
              icon="filter"
              label={active ? s.filtersActive(active) : s.filters}
              aria-expanded={filters}
              onClick={() => setFilters(!filters)}
              class={active ? 'marked' : ''}
            />
            <IconButton icon="keyboard" label={s.shortcuts} onClick={() => setHelp(true)} />
          </div>
          <Search inputRef={searchInput} value={route.query.get('q') ?? ''} />
          <Segmented<View>
            label={s.view}
            value={view}
            change={(v) => setQuery({ view: v === 'open' ? undefined : v })}
            options={(['open', 'waiting', 'unread', 'mine', 'closed'] as View[]).map((v) => ({
              value: v,
              label: s.views[v],
              count: tabCounts[v] ?? 0,
            }))}
          />
          {filters && (
            <div class="filters">
              <Field label={s.application}>
                <Select
                  value={route.query.get('app') ?? ''}
                  change={(v) => setQuery({ app: v })}
                  options={[{ value: '', label: s.all }, ...apps.map((a) => ({ value: a.id, label: a.name }))]}
                />
              </Field>
              <Field label={s.assignee}>
                <Select
                  disabled={view === 'mine' || view === 'waiting'}
                  value={route.query.get('assignee') ?? ''}
                  change={(v) => setQuery({ assignee: v })}
                  options={[
                    { value: '', label: s.anybody },
                    { value: 'none', label: s.nobody },
                    ...agents.map((a) => ({ value: a.id, label: a.name })),
                  ]}
                />
              </Field>
              <Field label={s.handledBy}>
                <Select
                  disabled={view === 'waiting' || view === 'unread'}
                  value={route.query.get('control') ?? ''}
                  change={(v) => setQuery({ control: v })}
                  options={[
                    { value: '', label: s.all },
                    { value: 'bot', label: s.bot },
                    { value: 'agent', label: s.agent },
                  ]}
                />
              </Field>
              <Field label={s.status}>
                <Select
                  disabled={view === 'closed'}
                  value={route.query.get('pending') ?? ''}
                  change={(v) => setQuery({ pending: v })}
                  options={[
                    { value: '', label: s.allOpen },
                    { value: '1', label: s.statuses.pending },
                  ]}
                />
              </Field>
              {active > 0 && (
                <Button
                  small
                  kind="quiet"
                  onClick={() => setQuery({ app: '', assignee: '', control: '', pending: '' })}
                >
                  {s.clearFilters}
                </Button>
              )}
            </div>
          )}
        </header>
        {!state.ready && state.loading && <Skeleton class="rows" rows={9} />}
        {!state.items.length && !!state.error && <Failed error={state.error} retry={() => list.retry()} />}
        {state.ready && !state.items.length && !state.loading && !state.error && (
          <Empty
            icon="inbox"
            title={idle ? s.noneWaiting : filtered ? s.noneFound : s.empty}
            action={filtered && <Button onClick={() => navigate('/inbox', { replace: true })}>{s.showAll}</Button>}
          >
            {idle ? s.noneWaitingLead : filtered ? s.noneFoundLead : s.emptyLead}
          </Empty>
        )}
        {state.items.length > 0 && (
          <VirtualList
            label={s.chats}
            items={state.items}
            rowHeight={ROW_HEIGHT}
            keyOf={(c) => c.id}
            current={chatId || undefined}
            onEnd={() => list.more()}
            onKeyDown={(e) => rowKeys(e, () => list.more())}
            footer={
              <>
                {state.loading && state.ready && (
                  <p class="list-note" role="status">
                    {s.loadingMore}
                  </p>
                )}
                {!!state.error && (
                  <p class="list-note" role="alert">
                    {s.moreFailed}{' '}
                    <button type="button" class="textbutton" onClick={() => list.retry()}>
                      {strings.tryAgain}
                    </button>
                  </p>
                )}
              </>
            }
            row={(c) => (
              <ChatRow
                chat={c}
                current={c.id === chatId}
                query={query}
                showApp={apps.length > 1}
                apps={apps}
                me={me.id}
              />
            )}
          />
        )}
      </section>
      {chatId ? (
        <ConversationView key={chatId} chatId={chatId} list={list} agents={agents} apps={apps} query={query} />
      ) : (
        <section class="conversation none" aria-label={s.conversation}>
          <Empty icon="inbox" title={s.noneChosen}>
            {s.noneChosenLead}
          </Empty>
        </section>
      )}
      {help && <Shortcuts close={() => setHelp(false)} />}
    </div>
  );
}

/** Moves the focus between rows with the arrow keys, Home and End. */
function rowKeys(e: KeyboardEvent, more: () => void) {
  const box = e.currentTarget as HTMLElement;
  const rows = [...box.querySelectorAll<HTMLElement>('a.chat-row')];
  const at = rows.indexOf(document.activeElement as HTMLElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[e.key];
  if (at < 0 || to === undefined) return;
  e.preventDefault();
  const row = rows[Math.max(0, Math.min(rows.length - 1, to))];
  row?.focus();
  row?.scrollIntoView({ block: 'nearest' });
  if (to >= rows.length - 1) more();
}

function LiveMark({ state }: { state: 'connecting' | 'live' | 'lost' }) {
  return (
    <span class={`live ${state}`} role="status">
      <span class="live-dot" />
      {s.live[state]}
    </span>
  );
}

function Search({ value, inputRef }: { value: string; inputRef: { current: HTMLInputElement | null } }) {
  const [text, setText] = useState(value);
  const timer = useRef<ReturnType<typeof setTimeout>>();
  useEffect(() => setText(value), [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const search = (v: string) => {
    setText(v);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setQuery({ q: v.trim() }), 300);
  };
  return (
    <div class="search">
      <Glyph name="search" size={16} />
      <input
        ref={inputRef}
        type="search"
        class="input"
        aria-label={s.search}
        placeholder={s.search}
        value={text}
        onInput={(e) => search(e.currentTarget.value)}
        onKeyDown={(e) => e.key === 'Escape' && (text ? search('') : e.currentTarget.blur())}
      />
    </div>
  );
}

function AlertsMenu() {
  const a = useStore(alerts);
  const [open, setOpen] = useState(false);
  const desktop = async (on: boolean) => {
    if (!on) return setAlerts({ desktop: false });
    if (!(await requestDesktop())) toast(s.desktopRefused, 'bad');
  };
  return (
    <>
      <IconButton icon={a.sound ? 'bell' : 'mute'} label={s.alerts} onClick={() => setOpen(true)} />
      {open && (
        <Dialog
          title={s.alerts}
          close={() => setOpen(false)}
          footer={
            <Button kind="primary" onClick={() => setOpen(false)}>
              {strings.done}
            </Button>
          }
        >
          <Checkbox label={s.sound} hint={s.soundHint} checked={a.sound} change={(sound) => setAlerts({ sound })} />
          <Checkbox
            label={s.desktop}
            hint={canNotify() ? s.desktopHint : s.desktopMissing}
            disabled={!canNotify()}
            checked={a.desktop && canNotify() && Notification.permission === 'granted'}
            change={(on) => void desktop(on)}
          />
        </Dialog>
      )}
    </>
  );
}

function Shortcuts({ close }: { close(): void }) {
  const a = useStore(alerts);
  return (
    <Dialog title={s.shortcuts} close={close}>
      <dl class="keys">
        {s.keys.map(([key, what]) => (
          <div key={key}>
            <dt>
              {key.split(' ').map((k) => (
                <kbd key={k}>{k}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <Checkbox label={s.singleKeys} hint={s.singleKeysHint} checked={a.keys} change={(keys) => setAlerts({ keys })} />
    </Dialog>
  );
}

interface RowProps {
  chat: Chat;
  current: boolean;
  query: string;
  showApp: boolean;
  apps: Application[];
  me: string;
}

function ChatRow({ chat: c, current, query, showApp, me }: RowProps) {
  const last = c.waiting ? (c.question ?? c.lastMessage) : c.lastMessage;
  const words = last ? lineOf(last) || s.message : s.noMessage;
  const from = last?.isFromSupport ? `${last.nameOfSender || s.support}: ` : '';
  return (
    <a
      class={c.unread ? 'chat-row unread' : 'chat-row'}
      href={`#/inbox/${c.id}${query ? `?${query}` : ''}`}
      aria-current={current ? 'true' : undefined}
    >
      <Avatar name={c.visitor.id} letters={initials(c.visitor.name)} />
      <span class="chat-text">
        <span class="chat-line">
          <span class="chat-name" dir="auto" title={c.visitor.name}>
            {c.visitor.name}
          </span>
          {c.waiting && c.controlledSince ? (
            <time class="wait" dateTime={c.controlledSince} title={s.waitsSince(formatFull(c.controlledSince))}>
              {s.waits(waited(c.controlledSince))}
            </time>
          ) : (
            <time dateTime={c.activityAt} title={formatFull(c.activityAt)}>
              {formatShort(c.activityAt)}
            </time>
          )}
        </span>
        <span class="chat-line">
          <span class="chat-words" dir="auto">
            {from}
            {words}
          </span>
          {c.unread && (
            <span class="count">
              {c.unreadCount > 99 ? '99+' : Math.max(1, c.unreadCount)}
              <span class="sr"> {s.unread}</span>
            </span>
          )}
        </span>
        <span class="chat-line marks">
          <AssigneeMark chat={c} me={me} />
          {c.status === 'pending' && <span>{s.statuses.pending}</span>}
          {c.status === 'closed' && <span>{s.statuses.closed}</span>}
          {c.rating && <span>{s.stars(c.rating.score)}</span>}
          {c.status === 'active' && !c.inWindow && <span class="warn">{s.windowOver}</span>}
          {showApp && c.appName && <span class="chat-app">{c.appName}</span>}
          {c.channel === 'phone' && <span>{s.phone}</span>}
        </span>
      </span>
    </a>
  );
}

/** How long a chat has waited, in minutes. */
const waited = (since: string): string =>
  formatDuration(Math.max(60, Math.floor((Date.now() - Date.parse(since)) / 60_000) * 60));

function AssigneeMark({ chat: c, me }: { chat: Chat; me: string }) {
  if (c.waiting)
    return (
      <span class="warn">
        <Glyph name="hand" size={14} />
        {c.handover ? c.handover.reason || s.handoverBy[c.handover.by] : s.waiting}
      </span>
    );
  if (c.assignee)
    return (
      <span class={c.assignee.id === me ? 'mine' : ''}>
        <Glyph name="account" size={14} />
        {c.assignee.id === me ? s.you : c.assignee.name}
      </span>
    );
  if (c.control === 'agent')
    return (
      <span>
        <Glyph name="account" size={14} />
        {s.unassigned}
      </span>
    );
  return c.status === 'pending' ? null : (
    <span>
      <Glyph name="bot" size={14} />
      {s.bot}
    </span>
  );
}

export type { Agent };
