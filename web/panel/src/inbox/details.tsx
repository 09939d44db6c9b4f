/** What is known about the open chat and about one message. */
import type { Agent, Chat, Message } from '../api/types.js';
import { formatFull, initials } from '../lib/format.js';
import { app, can } from '../state.js';
import { strings } from '../strings.js';
import { Button, IconButton } from '../ui/button.js';
import { Code } from '../ui/copy.js';
import { Dialog } from '../ui/dialog.js';
import { Field, Select } from '../ui/field.js';
import { Glyph } from '../ui/icon.js';
import { Facts } from '../ui/page.js';
import { Avatar, Badge } from '../ui/states.js';
import { Earlier } from './earlier.js';

const s = strings.inbox;

interface DetailsProps {
  chat: Chat;
  earlier: Chat[];
  agents: Agent[];
  assign(userId: string | null): void;
  busy: boolean;
  now: number;
  close(): void;
}

/** The panel beside the conversation: assignee, visitor and chat. */
export function Details({ chat: c, earlier, agents, assign, busy, now, close }: DetailsProps) {
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

/** The id of a message, which Trace and the support of the company ask for. */
export function MessageDetails({ m, close }: { m: Message; close(): void }) {
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
