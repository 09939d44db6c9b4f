import { useState } from 'preact/hooks';
import { list, object, text, type Data } from '@parley/shared/message.js';
import { streams as api } from '../api/api.js';
import { isCode, isStatus } from '../api/client.js';
import { formatClock, formatFull } from '../lib/format.js';
import { useLoad } from '../lib/load.js';
import { navigate } from '../lib/router.js';
import { strings } from '../strings.js';
import { Button } from '../ui/button.js';
import { Code } from '../ui/copy.js';
import { Field, TextInput } from '../ui/field.js';
import { Card, Facts } from '../ui/page.js';
import { Badge, Empty, Failed, Skeleton } from '../ui/states.js';

const s = strings.streams;

/** Traces a message from the request to the browser. */
export function Trace({ id }: { id: string }) {
  const [wanted, setWanted] = useState(id);
  const go = (e: Event) => {
    e.preventDefault();
    if (wanted.trim()) navigate(`/streams/trace/${encodeURIComponent(wanted.trim())}`);
  };
  return (
    <>
      <form class="row-flex end-line" onSubmit={go}>
        <Field label={s.messageId} hint={s.traceHint} class="grow-1">
          <TextInput
            value={wanted}
            change={setWanted}
            class="mono"
            placeholder="01939f3c-8a4e-7c7b-9a53-5f2f8b3b8c11"
          />
        </Field>
        <Button type="submit" kind="primary" icon="route">
          {s.traceAction}
        </Button>
      </form>
      {id ? (
        <Result key={id} id={id} />
      ) : (
        <Empty icon="route" title={s.traceEmpty}>
          {s.traceEmptyLead}
        </Empty>
      )}
    </>
  );
}

export interface Step {
  at: string;
  title: string;
  detail: string;
  kind: 'plain' | 'good' | 'warn' | 'bad';
  facts: [string, string][];
}

/** Returns the steps of a trace in chronological order. */
export function stepsOf(trace: Data): Step[] {
  const steps: Step[] = [];
  for (const e of list(trace.events)) {
    const consumers = list(e.consumers);
    const kind = consumers.some((c) => c.state === 'dead')
      ? 'bad'
      : consumers.some((c) => c.state === 'waiting' || text(c.lastError))
        ? 'warn'
        : 'good';
    steps.push({
      at: text(e.time),
      kind,
      title: s.inStream(text(e.stream), text(e.sequence)),
      detail: [text(e.kind), text(e.type), text(e.text)].filter(Boolean).join(' · '),
      facts: [
        [s.subject, text(e.subject)],
        ...consumers.map((c): [string, string] => [
          text(c.name),
          [text(c.state), Number(c.attempts) > 1 && s.tried(Number(c.attempts)), text(c.lastError)]
            .filter(Boolean)
            .join(', '),
        ]),
      ],
    });
  }
  const stored = object(trace.stored);
  const status = object(trace.status);
  if (text(status.acceptedAt))
    steps.push({ at: text(status.acceptedAt), kind: 'good', title: s.steps.accepted, detail: '', facts: [] });
  if (text(stored.chatId))
    steps.push({
      at: text(status.storedAt) || text(stored.createdAt),
      kind: 'good',
      title: s.steps.stored,
      detail: [text(stored.type), text(stored.from)].filter(Boolean).join(' · '),
      facts: [[strings.inbox.chatId, text(stored.chatId)]],
    });
  if (text(status.deliveredAt))
    steps.push({ at: text(status.deliveredAt), kind: 'good', title: s.steps.delivered, detail: '', facts: [] });
  if (text(status.readAt))
    steps.push({ at: text(status.readAt), kind: 'good', title: s.steps.read, detail: '', facts: [] });
  if (text(status.failedAt))
    steps.push({
      at: text(status.failedAt),
      kind: 'bad',
      title: s.steps.failed,
      detail: text(status.failure),
      facts: [],
    });
  for (const l of list(trace.deadLetters))
    steps.push({
      at: text(l.time),
      kind: 'bad',
      title: s.letter(Number(l.sequence)),
      detail: text(l.reason),
      facts: [[s.consumer, text(l.consumer)]],
    });
  return steps.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
}

function Result({ id }: { id: string }) {
  const { data, error, reload } = useLoad((signal) => api.trace(id, signal), [id]);
  const [raw, setRaw] = useState(false);
  if (!data) {
    if (isCode(error, 'MESSAGE_NOT_FOUND') || isStatus(error, 404))
      return (
        <Empty icon="search" title={s.noTrace}>
          {s.noTraceLead}
        </Empty>
      );
    return error ? <Failed error={error} retry={reload} /> : <Skeleton />;
  }
  const steps = stepsOf(data);
  const first = Date.parse(steps[0]?.at ?? '');
  return (
    <Card
      title={s.traceOf}
      actions={
        <>
          <Button small icon="refresh" onClick={reload}>
            {s.again}
          </Button>
          <Button small aria-pressed={raw} onClick={() => setRaw(!raw)}>
            {raw ? s.asSteps : s.asJson}
          </Button>
        </>
      }
    >
      <Facts
        facts={[
          [s.messageId, <code class="wrap-any">{text(data.messageId)}</code>],
          ...(text(data.companyId)
            ? [[s.company, <code class="wrap-any">{text(data.companyId)}</code>] as [string, preact.ComponentChild]]
            : []),
          ...(text(data.chatId)
            ? [
                [
                  strings.inbox.chat,
                  <a class="wrap-any" href={`#/inbox/${text(data.chatId)}`}>
                    {text(data.chatId)}
                  </a>,
                ] as [string, preact.ComponentChild],
              ]
            : []),
        ]}
      />
      {raw ? (
        <Code label={s.asJson} text={JSON.stringify(data, null, 2)} />
      ) : (
        <ol class="steps">
          {steps.map((x, i) => (
            <li key={i} class={x.kind}>
              <time dateTime={x.at} title={formatFull(x.at)}>
                {formatClock(x.at)}
                <small>{i > 0 && s.plus(Date.parse(x.at) - first)}</small>
              </time>
              <div>
                <h3>{x.title}</h3>
                {x.detail && <p class="muted wrap-any">{x.detail}</p>}
                {x.facts.map(([k, v]) => (
                  <p key={k + v} class="step-fact">
                    <Badge>{k}</Badge> <span class="wrap-any">{v}</span>
                  </p>
                ))}
              </div>
            </li>
          ))}
        </ol>
      )}
    </Card>
  );
}
