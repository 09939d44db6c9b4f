import type { Message } from '@parley/shared/message.js';
import { Content, type Render } from '@parley/shared/render/content.js';
import { Icon } from '@parley/shared/render/icon.js';
import { midnight, type Language } from '../i18n.js';
import { Avatar } from './avatar.js';
import { noticeText } from './support.js';

/** Messages of one sender within this time are a group: one name, one picture, one time. */
const GROUP_INTERVAL = 5 * 60_000;

/** A chosen payload, and whether it is still being sent. */
export type Answer = [payload: string, choosing?: boolean];

interface RowProps {
  message: Message;
  before: Message | undefined;
  after: Message | undefined;
  reachable: boolean;
  answer: Answer | undefined;
  seen: string;
  ends: string[];
  language: Language;
  render: Render;
  now: number;
}

const timeOf = (m: Message) => Date.parse(m.createdAt);

const sameGroup = (a: Message | undefined, b: Message | undefined): boolean =>
  !!a &&
  !!b &&
  a.isFromSupport === b.isFromSupport &&
  a.nameOfSender === b.nameOfSender &&
  timeOf(b) - timeOf(a) < GROUP_INTERVAL &&
  midnight(timeOf(a)) === midnight(timeOf(b));

/** A message that the server has accepted, with the day above it if that begins here. */
export function Row({ message: m, before, after, reachable, answer, seen, ends, language, render, now }: RowProps) {
  const opens = !!before && ends.includes(before.id); // the first message of its chat
  const first = opens || !sameGroup(before, m);
  const last = !sameGroup(m, after) || ends.includes(m.id);
  const day = opens || !before || midnight(timeOf(before)) !== midnight(timeOf(m));
  const side = m.isFromSupport ? 'theirs' : 'mine';
  const read = !m.isFromSupport && seen >= m.createdAt;
  const author = m.isFromSupport ? m.nameOfSender : language.t('you');
  const notice = noticeText(m, language, now);
  const heading = day && (
    <h3 class={opens ? 'day opens' : 'day'}>
      <span>{language.day(timeOf(m), now)}</span>
    </h3>
  );
  if (notice) {
    return (
      <>
        {heading}
        <article class="row notice" data-key={m.id} data-id={m.id} tabIndex={-1} aria-label={language.full(timeOf(m))}>
          <p class="note">{notice}</p>
        </article>
      </>
    );
  }
  return (
    <>
      {heading}
      <article
        class={`row ${side}${first ? ' first' : ''}${last ? ' last' : ''} t-${m.type.toLowerCase()}`}
        data-key={m.id}
        data-id={m.id}
        tabIndex={-1}
        aria-label={`${author}, ${language.full(timeOf(m))}`}
      >
        {m.isFromSupport &&
          (last ? <Avatar name={m.nameOfSender} class="small" /> : <span class="avatar small none" />)}
        <div class="body">
          {first && m.isFromSupport && (
            <p class="author" dir="auto">
              {m.nameOfSender}
            </p>
          )}
          <div class="bubble">
            <Content message={m} render={render} reachable={reachable} chosen={answer?.[0]} choosing={answer?.[1]} />
          </div>
          {last && (
            <p class="meta">
              <time dateTime={m.createdAt} title={language.full(timeOf(m))}>
                {language.ago(timeOf(m), now)}
              </time>
              {!m.isFromSupport && (
                <span class={read ? 'mark read' : 'mark'}>
                  <Icon name={read ? 'checks' : 'check'} />
                  {language.t(read ? 'seen' : 'sent')}
                </span>
              )}
            </p>
          )}
        </div>
      </article>
    </>
  );
}
