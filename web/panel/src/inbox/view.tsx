import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { Content, type Render } from '@parley/shared/render/content.js';
import { text } from '@parley/shared/message.js';
import { throttle } from '@parley/shared/typing.js';
import { chats as api } from '../api/api.js';
import { isStatus, messageOf } from '../api/client.js';
import { live } from '../api/live.js';
import type { Agent, Application, Chat, Message, VisitorPresence } from '../api/types.js';
import { count, formatBytes, formatDay, formatDuration, formatFull, formatTime, initials } from '../lib/format.js';
import { navigate } from '../lib/router.js';
import { useStore } from '../lib/store.js';
import { app, can } from '../state.js';
import { strings } from '../strings.js';
import { refreshCounts } from '../counts.js';
import { Button, IconButton } from '../ui/button.js';
import { Code } from '../ui/copy.js';
import { Dialog } from '../ui/dialog.js';
import { Field, Select } from '../ui/field.js';
import { Glyph } from '../ui/icon.js';
import { Facts } from '../ui/page.js';
import { Avatar, Badge, Empty, Failed, Skeleton } from '../ui/states.js';
import { toast } from '../ui/toast.js';
import { alerts } from './alerts.js';
import { closeLater, undoClose } from './closing.js';
import { Earlier, lastAgent, Suggestion } from './earlier.js';
import { Composer, type ComposerHandle } from './composer.js';
import { Conversation, type Pending } from './conversation.js';
import { applyChat, applyRating, type ChatList } from './list.js';

const s = strings.inbox;

export interface ViewProps {
  chatId: string;
  list: ChatList;
  agents: Agent[];
  apps: Application[];
  query: string;
}

/** The interval of presence updates to other agents, in milliseconds. */
const PRESENCE_INTERVAL = 20_000;

export function ConversationView({ chatId, list, agents, apps, query }: ViewProps) {
  const me = app.value.session!.user;
  const meta = app.value.meta!;
  const listed = useStore(list.state).items.find((c) => c.id === chatId);
  const [own, setOwn] = useState<Chat>();
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState('');
  const [earlier, setEarlier] = useState<Chat[]>([]);
  const [shown, setShown] = useState<Message>();
  const [details, setDetails] = useState(innerWidth >= 1500);
  const [picture, setPicture] = useState<{ url: string; name: string }>();
  const [now, setNow] = useState(Date.now());
  const composer = useRef<ComposerHandle>(null);
  const [visitorPresence, setVisitorPresence] = useState<VisitorPresence>();
  const chat = listed ?? own;
  const closed = chat?.status === 'closed';
  const back = `/inbox${query ? `?${query}` : ''}`;
  const visitorId = useRef('');
  visitorId.current = chat?.visitor.id ?? '';
  const sendTyping = useMemo(() => throttle(() => void api.typing(chatId).catch(() => {})), []);

  const conversation = useMemo(
    () =>
      new Conversation({
        chatId,
        me: me.id,
        page: (cursor, signal) => api.messages(chatId, cursor, signal),
        send: (body, key) => api.send(chatId, body, key),
        sendFile: (...args) => api.sendFile(chatId, ...args),
        sent: (message) => {
          list.onMessage({ chatId, message });
          void refresh(); // the first reply takes the chat over from the bot
        },
      }),
    [],
  );
  const state = useStore(conversation.state);

  const take = (c: Chat) => {
    setOwn(c);
    if (list.find(c.id) || list.state.value.ready) list.put(c);
  };
  const refresh = () =>
    api.get(chatId).then(
      (c) => {
        setError(undefined);
        take(c);
      },
      (err: unknown) => setError(err),
    );

  const lastRead = useRef('');
  const markRead = () => {
    const newest = conversation.state.value.messages.findLast((m) => !m.isFromSupport);
    if (!newest || !document.hasFocus() || document.hidden || newest.id === lastRead.current) return;
    lastRead.current = newest.id;
    api.read(chatId, newest.createdAt).then(
      () => {
        list.onRead({ chatId });
        refreshCounts();
      },
      () => (lastRead.current = ''),
    );
  };

  useEffect(() => {
    void refresh();
    void conversation.load().then(markRead);
    const sendPresence = () =>
      void api.presence(chatId).then(
        (a) => setVisitorPresence(a.visitor),
        () => {},
      );
    sendPresence();
    const pulse = setInterval(sendPresence, PRESENCE_INTERVAL);
    const clock = setInterval(() => {
      conversation.expire();
      setNow(Date.now());
    }, 5000);
    const stops = [
      live.on('message', (e) => {
        if (e.chatId !== chatId) return;
        conversation.onMessage(e.message);
        if (!e.message.isFromSupport) setVisitorPresence((t) => t && { online: true });
        markRead();
      }),
      live.on('chat', (e) => {
        if (e.chatId !== chatId) return;
        setOwn((c) => c && applyChat(c, e, list.config.agentName));
      }),
      live.on('rated', (e) => e.chatId === chatId && setOwn((c) => c && applyRating(c, e))),
      live.on('presence', (e) => e.chatId === chatId && conversation.onPresence(e)),
      live.on('status', (e) => conversation.onStatus(e.messageId, e.status)),
      live.on('seen', (e) => e.chatId === chatId && conversation.onSeen(e.upTo)),
      live.on('typing', (e) => {
        if (e.visitorId !== visitorId.current) return;
        conversation.onTyping(e);
        if (e.side === 'visitor') setVisitorPresence((t) => t && { online: true });
      }),
      live.state.subscribe((state) => state === 'live' && sendPresence()),
      live.on('reset', () => {
        void conversation.load();
        void refresh();
      }),
    ];
    addEventListener('focus', markRead);
    return () => {
      stops.forEach((stop) => stop());
      clearInterval(pulse);
      clearInterval(clock);
      removeEventListener('focus', markRead);
      conversation.stop();
    };
  }, []);

  useEffect(() => {
    const visitor = chat?.visitor.id;
    if (!visitor) return;
    const run = new AbortController();
    api.ofVisitor(visitor, run.signal).then(
      (all) => setEarlier(all.filter((c) => c.id !== chatId)),
      () => {},
    );
    return () => run.abort();
  }, [chat?.visitor.id]);

  // A list requested before the chat was read may still mark the chat as unread.
  useEffect(() => {
    if (
      listed?.unread &&
      lastRead.current &&
      lastRead.current === conversation.state.value.messages.findLast((m) => !m.isFromSupport)?.id
    )
      list.onRead({ chatId });
  }, [listed?.unread]);

  const act = async (what: string, run: () => Promise<Chat>, done?: string) => {
    if (busy) return;
    setBusy(what);
    try {
      take(await run());
      if (done) toast(done);
    } catch (err) {
      toast(messageOf(err), 'bad');
    } finally {
      setBusy('');
    }
  };
  const takeOver = () => void act('control', () => api.control(chatId, 'agent'));
  const handBack = () => void act('control', () => api.control(chatId, 'bot'), s.handedBack);
  const close = () => {
    if (!chat || closed) return;
    const path = `/inbox/${chatId}${query ? `?${query}` : ''}`;
    const send = () =>
      void api
        .close(chatId)
        .catch((err: unknown) => toast(messageOf(err), 'bad'))
        .then(() => list.restore(chatId))
        .then(() => api.get(chatId))
        .then(
          (c) => list.put(c),
          () => {},
        );
    list.hide(chat);
    closeLater(chatId, send, () => list.restore(chatId));
    toast(s.closed, 'good', { label: s.undo, act: () => undoClose(chatId) && navigate(path) });
    navigate(back);
  };
  const assign = (userId: string | null) => void act('assign', () => api.assign(chatId, userId));

  useEffect(() => {
    const keys = (e: KeyboardEvent) => {
      const at = e.target as HTMLElement;
      if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented || !alerts.value.keys || !chat) return;
      if (/^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName) || document.querySelector('dialog[open], .menu:popover-open'))
        return;
      const open = chat.status !== 'closed';
      const act = {
        r: () => composer.current?.focus(),
        a: () => open && assign(chat.assignee?.id === me.id ? null : me.id),
        t: () => open && (chat.control === 'bot' || chat.waiting ? takeOver() : handBack()),
        e: () => open && close(),
        i: () => setDetails(!details),
      }[e.key];
      if (!act) return;
      e.preventDefault();
      act();
    };
    addEventListener('keydown', keys);
    return () => removeEventListener('keydown', keys);
  });

  const render: Render = useMemo(
    () => ({
      t: (key, values) =>
        strings.render[key].replace(/\{(\w+)\}/g, (all, name: string) => String(values?.[name] ?? all)),
      n: (_, n) => count(n, strings.render.cards),
      bytes: formatBytes,
      base: meta.widgetBaseUrl.replace(/\/?$/, '/'),
      origins: [new URL(meta.widgetBaseUrl).origin, location.origin],
      preview: setPicture,
    }),
    [],
  );

  if (!chat && error) {
    return (
      <section class="conversation none" aria-label={s.conversation}>
        {isStatus(error, 404) ? (
          <Empty icon="search" title={s.gone} action={<Button onClick={() => navigate('/inbox')}>{s.back}</Button>}>
            {s.goneLead}
          </Empty>
        ) : (
          <Failed error={error} retry={() => void refresh()} />
        )}
      </section>
    );
  }
  const botName = apps.find((a) => a.id === chat?.appId)?.botName ?? '';
  const suggested = lastAgent(earlier);
  const others = state.viewers.filter((l) => l.until > now);
  const writing = [
    ...(state.visitorTyping && chat ? [chat.visitor.name] : []),
    ...state.typing.map((name) => name || botName || s.support),
  ];
  return (
    <>
      <section class="conversation" aria-label={chat ? s.conversationWith(chat.visitor.name) : s.conversation}>
        <header class="conv-head">
          <IconButton class="conv-back" icon="left" label={s.back} onClick={() => navigate(back)} />
          {chat ? (
            <>
              <Avatar name={chat.visitor.id} letters={initials(chat.visitor.name)} />
              <div class="conv-title">
                <h2 dir="auto" title={chat.visitor.name}>
                  {chat.visitor.name}
                </h2>
                <p>
                  {closed ? (
                    <Badge>{s.statuses.closed}</Badge>
                  ) : chat.status === 'pending' ? (
                    <Badge>{s.statuses.pending}</Badge>
                  ) : chat.control === 'bot' ? (
                    <Badge kind="accent">
                      <Glyph name="bot" size={14} />
                      {s.botAnswers}
                    </Badge>
                  ) : (
                    <Badge kind="good">
                      <Glyph name="account" size={14} />
                      {chat.assignee
                        ? chat.assignee.id === me.id
                          ? s.withYou
                          : s.with(chat.assignee.name)
                        : s.waiting}
                    </Badge>
                  )}
                  <WindowMark chat={chat} now={now} />
                  {chat.rating && (
                    <Badge kind={chat.rating.score >= 4 ? 'good' : chat.rating.score >= 3 ? 'plain' : 'warn'}>
                      {s.stars(chat.rating.score)}
                    </Badge>
                  )}
                  {visitorPresence && !closed && <PresenceMark presence={visitorPresence} now={now} />}
                </p>
              </div>
              <div class="conv-actions">
                {others.length > 0 && (
                  <div
                    class="looking"
                    role="group"
                    aria-label={s.looking(others.map((l) => l.name).join(', '))}
                    title={s.looking(others.map((l) => l.name).join(', '))}
                  >
                    <Glyph name="eye" size={16} />
                    {others.slice(0, 3).map((l) => (
                      <Avatar key={l.userId} name={l.userId} letters={initials(l.name)} size="small" />
                    ))}
                  </div>
                )}
                {!closed && (chat.control === 'bot' || chat.waiting) && (
                  <Button small kind="primary" icon="hand" busy={busy === 'control'} onClick={takeOver}>
                    {s.takeOver}
                  </Button>
                )}
                {!closed && chat.control === 'agent' && (
                  <Button small icon="bot" busy={busy === 'control'} onClick={handBack}>
                    {s.handBack}
                  </Button>
                )}
                {!closed && (
                  <Button small icon="archive" onClick={close}>
                    {s.close}
                  </Button>
                )}
                <IconButton
                  icon="info"
                  label={s.details}
                  aria-expanded={details}
                  onClick={() => setDetails(!details)}
                />
              </div>
            </>
          ) : (
            <Skeleton rows={1} />
          )}
        </header>
        {chat?.handover && !closed && (
          <div class="handover" role="note" aria-label={s.handover}>
            <Glyph name="hand" size={16} />
            <p dir="auto">
              <b>{s.handoverBy[chat.handover.by]}</b>
              {chat.handover.reason && `: ${chat.handover.reason}`}
              {chat.handover.note && (
                <small>
                  {chat.handover.by === 'offline_form' ? s.answerTo(chat.handover.note) : chat.handover.note}
                </small>
              )}
            </p>
          </div>
        )}
        {chat?.waiting && suggested && (
          <Suggestion
            agent={suggested}
            me={me.id}
            online={!!agents.find((a) => a.id === suggested.id)?.online}
            assign={() => assign(suggested.id)}
          />
        )}
        {!state.ready && !state.error && (
          <div class="log">
            <Skeleton rows={7} />
          </div>
        )}
        {!state.ready && !!state.error && <Failed error={state.error} retry={() => void conversation.load()} />}
        {state.ready && (
          <Log
            messages={state.messages}
            seenUpTo={state.seenUpTo}
            pending={state.pending}
            older={state.older}
            loadOlder={() => void conversation.loadOlder()}
            conversation={conversation}
            render={render}
            botName={botName}
            me={me}
            visitor={chat?.visitor}
            now={now}
            earlier={earlier}
            show={setShown}
          />
        )}
        <p class="typing" role="status">
          {writing.length > 0 && s.typing(writing.join(', '))}
        </p>
        {chat && <Composer handle={composer} chat={chat} conversation={conversation} typing={sendTyping} />}
      </section>
      {chat && details && (
        <Details
          chat={chat}
          earlier={earlier}
          agents={agents}
          assign={assign}
          busy={busy === 'assign'}
          now={now}
          close={() => setDetails(false)}
        />
      )}
      {shown && <MessageDetails m={shown} close={() => setShown(undefined)} />}
      {picture && <Lightbox {...picture} close={() => setPicture(undefined)} />}
    </>
  );
}

/** Shows whether the visitor is online. */
function PresenceMark({ presence, now }: { presence: VisitorPresence; now: number }) {
  if (presence.online)
    return (
      <span class="there on">
        <span class="there-dot" />
        {s.visitorOnline}
      </span>
    );
  if (!presence.lastSeenAt)
    return (
      <span class="there">
        <span class="there-dot" />
        {s.visitorAway}
      </span>
    );
  const ago = Math.max(0, now - Date.parse(presence.lastSeenAt)) / 1000;
  return (
    <span class="there" title={formatFull(presence.lastSeenAt)}>
      <span class="there-dot" />
      {s.visitorSeen(ago < 60 ? strings.justNow : strings.ago(formatDuration(Math.floor(ago / 60) * 60)))}
    </span>
  );
}

/** Shows how long messages without a template can still be sent. */
function WindowMark({ chat, now }: { chat: Chat; now: number }) {
  if (chat.status === 'closed') return null;
  if (!chat.windowExpiresAt) return null;
  const left = (Date.parse(chat.windowExpiresAt) - now) / 1000;
  if (!chat.inWindow || left < 0)
    return (
      <span class="window over">
        <Glyph name="clock" size={14} />
        {s.windowOver}
      </span>
    );
  return (
    <span class={left < 7200 ? 'window soon' : 'window'} title={s.windowEnds(formatFull(chat.windowExpiresAt))}>
      <Glyph name="clock" size={14} />
      {s.windowLeft(formatDuration(left < 3600 ? left : Math.floor(left / 60) * 60))}
    </span>
  );
}

interface LogProps {
  messages: Message[];
  /** The time up to which the visitor has read. */
  seenUpTo: string;
  pending: Pending[];
  older: 'loading' | 'more' | 'none' | 'failed';
  loadOlder(): void;
  conversation: Conversation;
  render: Render;
  botName: string;
  me: { id: string; name: string };
  visitor: Chat['visitor'] | undefined;
  now: number;
  earlier: Chat[];
  /** Shows the details of a message. */
  show(m: Message): void;
}

const GROUP_SPAN = 5 * 60_000;
const at = (m: Message) => Date.parse(m.createdAt);
const sameDay = (a: Message, b: Message) => new Date(at(a)).toDateString() === new Date(at(b)).toDateString();
const grouped = (a: Message | undefined, b: Message | undefined) =>
  !!a &&
  !!b &&
  a.isFromSupport === b.isFromSupport &&
  a.nameOfSender === b.nameOfSender &&
  at(b) - at(a) < GROUP_SPAN &&
  sameDay(a, b);

function Log({
  messages,
  seenUpTo,
  pending,
  older,
  loadOlder,
  conversation,
  render,
  botName,
  me,
  visitor,
  now,
  earlier,
  show,
}: LogProps) {
  const box = useRef<HTMLDivElement>(null);
  const sticky = useRef(true);
  const before = useRef({ height: 0, first: '' });
  const [unseen, setUnseen] = useState(0);
  const seen = useRef(messages.at(-1)?.id ?? '');

  useLayoutEffect(() => {
    const b = box.current!;
    const first = messages[0]?.id ?? '';
    if (sticky.current) {
      b.scrollTop = b.scrollHeight;
      seen.current = messages.at(-1)?.id ?? '';
      if (unseen) setUnseen(0);
    } else {
      if (first !== before.current.first) b.scrollTop += b.scrollHeight - before.current.height; // keep the scroll position when older messages are prepended
      const from = messages.findIndex((m) => m.id === seen.current);
      setUnseen(from < 0 ? 0 : messages.slice(from + 1).filter((m) => !m.isFromSupport).length);
    }
    before.current = { height: b.scrollHeight, first };
  }, [messages, pending]);

  useEffect(() => {
    const b = box.current!;
    const watch = new ResizeObserver(() => {
      if (sticky.current) b.scrollTop = b.scrollHeight;
    });
    watch.observe(b);
    watch.observe(b.firstElementChild!);
    return () => watch.disconnect();
  }, []);

  const scrolled = () => {
    const b = box.current;
    if (!b) return; // a scroll event may arrive after the chat was closed
    sticky.current = b.scrollHeight - b.scrollTop - b.clientHeight < 60;
    if (sticky.current && unseen) {
      seen.current = messages.at(-1)?.id ?? '';
      setUnseen(0);
    }
    if (b.scrollTop < 400 && older === 'more') loadOlder();
  };
  const scrollToEnd = () => {
    sticky.current = true;
    box.current!.scrollTop = box.current!.scrollHeight;
  };

  // A sent message replaces the pending one. If that had the focus, it moves along.
  const focusedBefore = box.current?.contains(document.activeElement) && document.activeElement!.closest('.pending');
  useLayoutEffect(() => {
    if (!focusedBefore || focusedBefore.isConnected || document.activeElement !== document.body) return;
    const sent = [...box.current!.querySelectorAll<HTMLElement>('.own:not(.pending)')].at(-1);
    (sent ?? box.current!).focus({ preventScroll: true });
  });

  const keys = (e: KeyboardEvent) => {
    const rows = [...box.current!.querySelectorAll<HTMLElement>('article')];
    const focused = document.activeElement as HTMLElement;
    const i = rows.indexOf(focused);
    if (focused !== box.current && i < 0) return;
    const to = {
      ArrowUp: i < 0 ? rows.length - 1 : i - 1,
      ArrowDown: i < 0 ? rows.length - 1 : i + 1,
      Home: 0,
      End: rows.length - 1,
    }[e.key];
    if (to === undefined) return;
    e.preventDefault();
    const row = rows[Math.max(0, Math.min(rows.length - 1, to))];
    row?.focus({ preventScroll: true });
    row?.scrollIntoView({ block: 'nearest' });
  };

  const chosen = useMemo(() => {
    const found: Record<string, string> = {};
    for (const m of messages)
      if (m.type === 'MULTIPLE_CHOICE_REPLY' && text(m.data.replyTo))
        found[text(m.data.replyTo)] = text(m.data.payload);
    return found;
  }, [messages]);

  return (
    <div class="log-wrap">
      <div
        ref={box}
        class="log"
        role="log"
        aria-label={s.messages}
        aria-live="polite"
        aria-relevant="additions"
        tabIndex={0}
        onScroll={scrolled}
        onKeyDown={keys}
      >
        <div class="log-inside">
          {older === 'more' && (
            <p class="log-note">
              <button type="button" class="textbutton" onClick={loadOlder}>
                {s.loadOlder}
              </button>
            </p>
          )}
          {older === 'loading' && messages.length > 0 && <p class="log-note">{strings.loading}</p>}
          {older === 'failed' && (
            <p class="log-note" role="alert">
              {s.olderFailed}{' '}
              <button type="button" class="textbutton" onClick={loadOlder}>
                {strings.tryAgain}
              </button>
            </p>
          )}
          {older === 'none' && earlier.length > 0 && (
            <section class="earlier-box" aria-label={s.earlier}>
              <h3>{s.earlier}</h3>
              <Earlier chats={earlier.slice(0, 3)} />
            </section>
          )}
          {older === 'none' && <p class="log-note">{messages.length ? s.beginning : s.noMessages}</p>}
          {messages.map((m, i) => (
            <Row
              key={m.id}
              m={m}
              status={statusOf(m, seenUpTo)}
              prev={messages[i - 1]}
              next={messages[i + 1]}
              chosen={chosen[m.id]}
              render={render}
              kind={
                !m.isFromSupport
                  ? 'visitor'
                  : m.nameOfSender === me.name
                    ? 'own'
                    : m.nameOfSender === botName
                      ? 'robot'
                      : 'agent'
              }
              colour={!m.isFromSupport ? (visitor?.id ?? '') : m.nameOfSender === me.name ? me.id : m.nameOfSender}
              visitor={visitor?.name ?? ''}
              now={now}
              show={show}
            />
          ))}
          {pending.map((p) => (
            <PendingRow key={p.key} item={p} conversation={conversation} />
          ))}
        </div>
      </div>
      {unseen > 0 && (
        <button type="button" class="to-end" onClick={scrollToEnd}>
          <Glyph name="down" size={16} />
          {count(unseen, s.newMessages)}
        </button>
      )}
    </div>
  );
}

/** Returns the status of a message. The visitor has read all messages from support up to seenUpTo. */
const statusOf = (m: Message, seenUpTo: string): Message['status'] =>
  m.isFromSupport && m.status !== 'failed' && m.createdAt <= seenUpTo ? 'read' : m.status;

interface RowProps {
  m: Message;
  status: Message['status'];
  prev: Message | undefined;
  next: Message | undefined;
  chosen: string | undefined;
  render: Render;
  kind: 'visitor' | 'own' | 'agent' | 'robot' /** The key that determines the avatar's colour. */;
  colour: string;
  visitor: string;
  now: number;
  show(m: Message): void;
}

function Row({ m, status, prev, next, chosen, render, kind, colour, visitor, now, show }: RowProps) {
  const first = !grouped(prev, m);
  const last = !grouped(m, next);
  const name = m.nameOfSender || (kind === 'visitor' ? visitor : s.support);
  const heading = (!prev || !sameDay(prev, m)) && (
    <h3 class="day">
      <span>{formatDay(m.createdAt, now)}</span>
    </h3>
  );
  if (m.isFromSupport && text(m.data.notice)) {
    return (
      <>
        {heading}
        <article class="log-note" data-id={m.id} tabIndex={-1} aria-label={formatFull(m.createdAt)} dir="auto">
          {text(m.data.text)}
        </article>
      </>
    );
  }
  return (
    <>
      {heading}
      <article
        class={`msg ${kind}${first ? ' first' : ''}${last ? ' last' : ''} t-${m.type.toLowerCase()}`}
        data-id={m.id}
        tabIndex={-1}
        aria-label={`${name}, ${formatFull(m.createdAt)}`}
      >
        {last ? (
          kind === 'robot' ? (
            <span class="avatar small robot" aria-hidden="true">
              <Glyph name="bot" size={16} />
            </span>
          ) : (
            <Avatar name={colour} letters={initials(name)} size="small" />
          )
        ) : (
          <span class="avatar small blank" aria-hidden="true" />
        )}
        <div class="msg-body">
          {first && (
            <p class="msg-who">
              <span dir="auto">{name}</span>
              {kind === 'robot' && <span class="tag">{s.bot}</span>}
            </p>
          )}
          <div class="bubble">
            <Content message={m} render={render} reachable chosen={chosen} />
          </div>
          {(last || status === 'failed') && (
            <p class="msg-meta">
              <time dateTime={m.createdAt} title={formatFull(m.createdAt)}>
                {formatTime(m.createdAt)}
              </time>
              {m.isFromSupport && status && <Status status={status} />}
            </p>
          )}
        </div>
        <IconButton small class="msg-more" icon="more" label={s.messageDetails} onClick={() => show(m)} />
      </article>
    </>
  );
}

/** The id of a message, which Trace and the support of the company ask for. */
function MessageDetails({ m, close }: { m: Message; close(): void }) {
  return (
    <Dialog
      title={s.messageDetails}
      close={close}
      footer={
        <>
          {can('streams') && (
            <a class="btn secondary" href={`#/streams/trace/${m.id}`}>
              <span>{strings.streams.trace}</span>
            </a>
          )}
          <Button kind="primary" onClick={close}>
            {strings.done}
          </Button>
        </>
      }
    >
      <div class="field">
        <span class="legend">{strings.streams.messageId}</span>
        <Code text={m.id} label={strings.streams.messageId} />
      </div>
      <Facts
        facts={[
          [s.sentAt, formatFull(m.createdAt)],
          ...(m.nameOfSender ? [[s.sender, m.nameOfSender] as [string, string]] : []),
          [s.kind, m.type],
        ]}
      />
    </Dialog>
  );
}

function Status({ status }: { status: NonNullable<Message['status']> }) {
  if (status === 'failed')
    return (
      <span class="mark bad">
        <Glyph name="alert" size={14} />
        {s.deliveryFailed}
      </span>
    );
  const two = status === 'delivered' || status === 'read';
  return (
    <span class={`mark ${status}`}>
      <Glyph name={two ? 'checks' : 'check'} size={14} />
      {s.messageStatuses[status]}
    </span>
  );
}

function PendingRow({ item: p, conversation }: { item: Pending; conversation: Conversation }) {
  const data = (p.body?.data ?? {}) as Record<string, unknown>;
  const words = p.file ? p.file.name : text(data.text) || text(data.body) || s.message;
  return (
    <article
      class={p.problem ? 'msg own pending bad' : 'msg own pending'}
      tabIndex={-1}
      aria-label={`${s.you}, ${p.problem ? s.notSent : s.sending}`}
    >
      <span class="avatar small blank" aria-hidden="true" />
      <div class="msg-body">
        <div class="bubble">
          {p.file ? (
            <p class="filelink">
              <span class="disc">
                <Glyph name="attach" />
              </span>
              <span class="filetext">
                <span class="filename">{words}</span>
                <span class="foot">{formatBytes(p.file.blob.size)}</span>
              </span>
            </p>
          ) : (
            <p class="words" dir="auto">
              {words}
            </p>
          )}
          {p.file?.caption && (
            <p class="words" dir="auto">
              {p.file.caption}
            </p>
          )}
          {p.file && !p.problem && <progress max={1} value={p.share} aria-label={s.uploading(p.file.name)} />}
        </div>
        <p class="msg-meta">
          {p.problem ? (
            <span class="mark bad" role="alert">
              <Glyph name="alert" size={14} />
              {s.notSentWhy(messageOf(p.problem))}
              <button type="button" class="textbutton" onClick={() => conversation.retry(p.key)}>
                {s.sendAgain}
              </button>
              <button type="button" class="textbutton" onClick={() => conversation.discard(p.key)}>
                {s.discard}
              </button>
            </span>
          ) : (
            <span class="mark">
              <Glyph name="clock" size={14} />
              {s.sending}
              {p.file && (
                <button type="button" class="textbutton" onClick={() => conversation.discard(p.key)}>
                  {strings.cancel}
                </button>
              )}
            </span>
          )}
        </p>
      </div>
    </article>
  );
}

interface DetailsProps {
  chat: Chat;
  earlier: Chat[];
  agents: Agent[];
  assign(userId: string | null): void;
  busy: boolean;
  now: number;
  close(): void;
}

function Details({ chat: c, earlier, agents, assign, busy, now, close }: DetailsProps) {
  const me = app.value.session!.user;
  const options = agents.some((a) => a.id === me.id) ? agents : [{ id: me.id, name: me.name }, ...agents];
  const v = c.visitor;
  const closed = c.status === 'closed';
  return (
    <aside class="details" aria-label={s.details}>
      <header>
        <h2>{s.details}</h2>
        <IconButton small icon="close" label={strings.close} onClick={close} />
      </header>
      <div class="who-card">
        <Avatar name={v.id} letters={initials(v.name)} size="large" />
        <h3 dir="auto">{v.name}</h3>
        {v.verifiedBy ? (
          <Badge kind="good">
            <Glyph name="shield" size={14} />
            {s.verified(s.verifiedBy[v.verifiedBy] ?? v.verifiedBy)}
          </Badge>
        ) : (
          <Badge>{s.notVerified}</Badge>
        )}
      </div>
      <section>
        <Field label={s.assignee}>
          <Select
            value={c.assignee?.id ?? ''}
            disabled={busy || closed}
            change={(id) => assign(id || null)}
            options={[
              { value: '', label: s.nobody },
              ...options.map((a) => ({ value: a.id, label: a.id === me.id ? s.nameYou(a.name) : a.name })),
            ]}
          />
        </Field>
        {!closed && c.assignee?.id !== me.id && (
          <Button small kind="quiet" onClick={() => assign(me.id)}>
            {s.assignMe}
          </Button>
        )}
      </section>
      <section>
        <h3>{s.visitor}</h3>
        <Facts
          facts={(
            [
              [s.email, v.email && <a href={`mailto:${v.email}`}>{v.email}</a>],
              [s.phone, v.phone && <a href={`tel:${v.phone}`}>{v.phone}</a>],
              [s.userId, v.userId],
            ] as [string, preact.ComponentChild][]
          ).filter(([, x]) => x)}
        />
        {!v.email && !v.phone && !v.userId && <p class="faint">{s.nothingKnown}</p>}
      </section>
      <section>
        <h3>{s.chat}</h3>
        <Facts
          facts={[
            [s.status, s.statuses[c.status]],
            ...(c.appName ? [[s.application, c.appName] as [string, string]] : []),
            [s.channel, s.channels[c.channel]],
            [s.started, formatFull(c.createdAt)],
            ...(c.closedAt
              ? [[s.closedAt, formatFull(c.closedAt)] as [string, string]]
              : !c.windowExpiresAt
                ? []
                : [
                    [
                      s.window,
                      c.inWindow && Date.parse(c.windowExpiresAt) > now
                        ? s.until(formatFull(c.windowExpiresAt))
                        : s.ended(formatFull(c.windowExpiresAt)),
                    ] as [string, string],
                  ]),
            ...(c.rating
              ? [
                  [
                    s.rating,
                    <>
                      {s.stars(c.rating.score)}
                      {c.rating.comment && <q dir="auto">{c.rating.comment}</q>}
                    </>,
                  ] as [string, preact.ComponentChild],
                ]
              : []),
            [s.chatId, <code class="wrap-any">{c.id}</code>],
          ]}
        />
      </section>
      {earlier.length > 0 && (
        <section>
          <h3>{s.earlier}</h3>
          <Earlier chats={earlier} />
        </section>
      )}
      {can('visitors') && (
        <section>
          <a href={`#/visitors?q=${encodeURIComponent(v.email ?? v.phone ?? v.userId ?? v.name)}`}>{s.privacy}</a>
        </section>
      )}
    </aside>
  );
}

function Lightbox({ url, name, close }: { url: string; name: string; close(): void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const from = document.activeElement;
    dialog.current!.showModal();
    return () => from instanceof HTMLElement && from.focus();
  }, []);
  return (
    <dialog
      ref={dialog}
      class="lightbox"
      aria-label={name}
      onCancel={(e) => {
        e.preventDefault();
        close();
      }}
      onClick={(e) => e.target === e.currentTarget && close()}
    >
      <header>
        <span dir="auto">{name}</span>
        <a
          class="iconbtn"
          href={url}
          target="_blank"
          rel="noopener noreferrer"
          aria-label={s.openOriginal}
          title={s.openOriginal}
        >
          <Glyph name="link" />
        </a>
        <IconButton icon="close" label={strings.close} onClick={close} />
      </header>
      <img src={url} alt={name} />
    </dialog>
  );
}
