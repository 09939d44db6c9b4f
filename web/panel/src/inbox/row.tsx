/** One message of the log: a row with its sender, and a row of a message that is being sent. */
import { Content, type Render } from '@parley/shared/render/content.js';
import { text } from '@parley/shared/message.js';
import { messageOf } from '../api/client.js';
import type { Message } from '../api/types.js';
import { formatBytes, formatDay, formatFull, formatTime, initials } from '../lib/format.js';
import { strings } from '../strings.js';
import { IconButton } from '../ui/button.js';
import { Glyph } from '../ui/icon.js';
import { Avatar } from '../ui/states.js';
import type { Conversation, Pending } from './conversation.js';

const s = strings.inbox;

/** Messages of one sender within this time, in milliseconds, are a group with one avatar and one name. */
const GROUP_SPAN = 5 * 60_000;
const at = (m: Message) => Date.parse(m.createdAt);
export const sameDay = (a: Message, b: Message) => new Date(at(a)).toDateString() === new Date(at(b)).toDateString();
export const grouped = (a: Message | undefined, b: Message | undefined) =>
  !!a &&
  !!b &&
  a.isFromSupport === b.isFromSupport &&
  a.nameOfSender === b.nameOfSender &&
  at(b) - at(a) < GROUP_SPAN &&
  sameDay(a, b);

interface RowProps {
  m: Message;
  status: Message['status'];
  prev: Message | undefined;
  next: Message | undefined;
  chosen: string | undefined;
  render: Render;
  kind: 'visitor' | 'own' | 'agent' | 'robot';
  /** The key that determines the avatar's colour. */
  colour: string;
  visitor: string;
  now: number;
  show(m: Message): void;
}

export function Row({ m, status, prev, next, chosen, render, kind, colour, visitor, now, show }: RowProps) {
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

export function PendingRow({ item: p, conversation }: { item: Pending; conversation: Conversation }) {
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
