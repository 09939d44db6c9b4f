/** The head of the open chat: visitor, state, who looks at it, the actions, and why it was handed over. */
import type { Chat, VisitorPresence } from '../api/types.js';
import { formatDuration, formatFull, initials } from '../lib/format.js';
import { app } from '../state.js';
import { strings } from '../strings.js';
import { Button, IconButton } from '../ui/button.js';
import { Glyph } from '../ui/icon.js';
import { Avatar, Badge, Skeleton } from '../ui/states.js';
import type { Actions } from './actions.js';
import type { Viewer } from './conversation.js';

const s = strings.inbox;

export interface HeaderProps {
  chat: Chat | undefined;
  actions: Actions;
  /** Other agents who look at the chat. */
  viewers: Viewer[];
  visitorPresence: VisitorPresence | undefined;
  now: number;
  /** Whether the details are shown. */
  details: boolean;
  toggleDetails(): void;
}

export function Header({ chat, actions, viewers, visitorPresence, now, details, toggleDetails }: HeaderProps) {
  return (
    <header class="conv-head">
      <IconButton class="conv-back" icon="left" label={s.back} onClick={actions.back} />
      {chat ? (
        <>
          <Avatar name={chat.visitor.id} letters={initials(chat.visitor.name)} />
          <div class="conv-title">
            <h2 dir="auto" title={chat.visitor.name}>
              {chat.visitor.name}
            </h2>
            <p>
              <StateBadge chat={chat} />
              <WindowMark chat={chat} now={now} />
              {chat.rating && <RatingBadge score={chat.rating.score} />}
              {visitorPresence && chat.status !== 'closed' && <PresenceMark presence={visitorPresence} now={now} />}
            </p>
          </div>
          <div class="conv-actions">
            {viewers.length > 0 && <Viewers viewers={viewers} />}
            {chat.status !== 'closed' && <ChatActions chat={chat} actions={actions} />}
            <IconButton icon="info" label={s.details} aria-expanded={details} onClick={toggleDetails} />
          </div>
        </>
      ) : (
        <Skeleton rows={1} />
      )}
    </header>
  );
}

/** Shows who answers, or that nobody does. */
function StateBadge({ chat }: { chat: Chat }) {
  const me = app.value.session!.user;
  if (chat.status === 'closed') return <Badge>{s.statuses.closed}</Badge>;
  if (chat.status === 'pending') return <Badge>{s.statuses.pending}</Badge>;
  if (chat.control === 'bot')
    return (
      <Badge kind="accent">
        <Glyph name="bot" size={14} />
        {s.botAnswers}
      </Badge>
    );
  const { assignee } = chat;
  const withAgent = assignee && (assignee.id === me.id ? s.withYou : s.with(assignee.name));
  return (
    <Badge kind="good">
      <Glyph name="account" size={14} />
      {withAgent ?? s.waiting}
    </Badge>
  );
}

function RatingBadge({ score }: { score: number }) {
  return <Badge kind={score >= 4 ? 'good' : score >= 3 ? 'plain' : 'warn'}>{s.stars(score)}</Badge>;
}

function Viewers({ viewers }: { viewers: Viewer[] }) {
  const label = s.looking(viewers.map((v) => v.name).join(', '));
  return (
    <div class="looking" role="group" aria-label={label} title={label}>
      <Glyph name="eye" size={16} />
      {viewers.slice(0, 3).map((v) => (
        <Avatar key={v.userId} name={v.userId} letters={initials(v.name)} size="small" />
      ))}
    </div>
  );
}

function ChatActions({ chat, actions }: { chat: Chat; actions: Actions }) {
  const busy = actions.busy === 'control';
  return (
    <>
      {(chat.control === 'bot' || chat.waiting) && (
        <Button small kind="primary" icon="hand" busy={busy} onClick={actions.takeOver}>
          {s.takeOver}
        </Button>
      )}
      {chat.control === 'agent' && (
        <Button small icon="bot" busy={busy} onClick={actions.handBack}>
          {s.handBack}
        </Button>
      )}
      <Button small icon="archive" onClick={actions.close}>
        {s.close}
      </Button>
    </>
  );
}

/** Shows why the chat was handed over to agents. */
export function HandoverNote({ handover: h }: { handover: NonNullable<Chat['handover']> }) {
  return (
    <div class="handover" role="note" aria-label={s.handover}>
      <Glyph name="hand" size={16} />
      <p dir="auto">
        <b>{s.handoverBy[h.by]}</b>
        {h.reason && `: ${h.reason}`}
        {h.note && <small>{h.by === 'offline_form' ? s.answerTo(h.note) : h.note}</small>}
      </p>
    </div>
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
