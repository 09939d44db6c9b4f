import { useEffect, useState } from 'preact/hooks';
import { streams as api } from '../api/api.js';
import { messageOf } from '../api/client.js';
import type { DeadLetterDetail, LetterResult } from '../api/types.js';
import { count, formatFull } from '../lib/format.js';
import { useLoad, usePages } from '../lib/load.js';
import { setQuery, useRoute } from '../lib/router.js';
import { strings } from '../strings.js';
import { Button } from '../ui/button.js';
import { Code } from '../ui/copy.js';
import { Dialog } from '../ui/dialog.js';
import { Field, TextInput } from '../ui/field.js';
import { Facts, Table } from '../ui/page.js';
import { Badge, Empty, Failed, Notice, Skeleton } from '../ui/states.js';
import { useSubmit } from '../ui/submit.js';
import { toast } from '../ui/toast.js';

const s = strings.streams;

export function DeadLetters() {
  const { query } = useRoute();
  const stream = query.get('stream') ?? '';
  const consumer = query.get('consumer') ?? '';
  const pages = usePages(
    (cursor, signal) => api.deadLetters({ ...(stream && { stream }), ...(consumer && { consumer }) }, cursor, signal),
    [stream, consumer],
  );
  const [chosen, setChosen] = useState<Set<number>>(new Set());
  const [shown, setShown] = useState<number>();
  const [action, setAction] = useState<{ what: 'redrive' | 'drop'; sequences: number[] | undefined }>();
  useEffect(() => setChosen(new Set()), [stream, consumer]);
  const all = pages.items.length > 0 && pages.items.every((l) => chosen.has(l.sequence));
  const toggle = (n: number) => setChosen((old) => new Set(old.has(n) ? [...old].filter((x) => x !== n) : [...old, n]));
  return (
    <>
      <div class="toolbar">
        <Filter label={s.stream} value={stream} change={(v) => setQuery({ stream: v })} />
        <Filter label={s.consumer} value={consumer} change={(v) => setQuery({ consumer: v })} />
        <span class="grow-1" />
        {chosen.size > 0 && <span class="muted">{s.chosen(chosen.size)}</span>}
        <Button
          icon="trash"
          disabled={!chosen.size}
          onClick={() => setAction({ what: 'drop', sequences: [...chosen] })}
        >
          {s.drop}
        </Button>
        <Button
          kind="primary"
          icon="refresh"
          disabled={!pages.items.length}
          onClick={() => setAction({ what: 'redrive', sequences: chosen.size ? [...chosen] : undefined })}
        >
          {chosen.size ? s.redriveChosen : s.redriveAll}
        </Button>
      </div>
      {!pages.ready && pages.loading && <Skeleton />}
      {!pages.ready && !!pages.error && <Failed error={pages.error} retry={pages.reload} />}
      {pages.ready && !pages.items.length && (
        <Empty icon="check" title={s.noDead}>
          {stream || consumer ? s.noDeadFilter : s.noDeadLead}
        </Empty>
      )}
      {pages.items.length > 0 && (
        <Table
          label={s.dead}
          numbers={[5]}
          head={[
            <input
              type="checkbox"
              class="box"
              aria-label={s.chooseAll}
              checked={all}
              onChange={() => setChosen(all ? new Set() : new Set(pages.items.map((l) => l.sequence)))}
            />,
            s.when,
            s.event,
            s.consumer,
            s.reason,
            s.attempts,
          ]}
        >
          {pages.items.map((l) => (
            <tr key={l.sequence}>
              <td>
                <input
                  type="checkbox"
                  class="box"
                  aria-label={s.choose(l.sequence)}
                  checked={chosen.has(l.sequence)}
                  onChange={() => toggle(l.sequence)}
                />
              </td>
              <td class="nowrap">
                {formatFull(l.time)}
                <div class="sub">#{l.sequence}</div>
              </td>
              <td>
                <button type="button" class="textbutton" onClick={() => setShown(l.sequence)}>
                  {l.eventType || s.unknownEvent}
                </button>
                <div class="sub subject" title={l.subject}>
                  {l.subject}
                </div>
              </td>
              <td class="nowrap">
                {l.consumer}
                <div class="sub">{l.stream}</div>
              </td>
              <td class="reason">{l.reason}</td>
              <td class="num">{l.attempts}</td>
            </tr>
          ))}
        </Table>
      )}
      {pages.more && (
        <div>
          <Button busy={pages.loading} onClick={pages.loadMore}>
            {strings.more}
          </Button>
        </div>
      )}
      {pages.ready && !!pages.error && <Notice kind="bad">{messageOf(pages.error)}</Notice>}
      {shown !== undefined && (
        <DeadLetterDialog
          sequence={shown}
          close={() => setShown(undefined)}
          redrive={() => {
            setShown(undefined);
            setAction({ what: 'redrive', sequences: [shown] });
          }}
        />
      )}
      {action && (
        <ActionDialog
          {...action}
          filter={{ ...(stream && { stream }), ...(consumer && { consumer }) }}
          close={(done) => {
            setAction(undefined);
            if (!done) return;
            setChosen(new Set());
            pages.reload();
          }}
        />
      )}
    </>
  );
}

function Filter({ label, value, change }: { label: string; value: string; change(v: string): void }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    const timer = setTimeout(() => text !== value && change(text.trim()), 350);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <Field label={label} class="inline">
      <TextInput value={text} change={setText} placeholder={s.anyValue} />
    </Field>
  );
}

function DeadLetterDialog({ sequence, close, redrive }: { sequence: number; close(): void; redrive(): void }) {
  const {
    data: l,
    error,
    reload,
  } = useLoad<DeadLetterDetail>((signal) => api.deadLetter(sequence, signal), [sequence]);
  return (
    <Dialog
      title={s.letter(sequence)}
      wide
      close={close}
      footer={
        <>
          <Button onClick={close}>{strings.close}</Button>
          <Button kind="primary" icon="refresh" disabled={!l} onClick={redrive}>
            {s.redrive}
          </Button>
        </>
      }
    >
      {!l && (error ? <Failed error={error} retry={reload} /> : <Skeleton />)}
      {l && (
        <>
          <Notice kind="bad">{l.reason}</Notice>
          <Facts
            facts={[
              [s.event, l.eventType || s.unknownEvent],
              [s.when, formatFull(l.time)],
              [s.consumer, `${l.stream} / ${l.consumer}`],
              [s.attempts, String(l.attempts)],
              [s.subject, <code class="wrap-any">{l.subject}</code>],
              ...(l.eventId
                ? [[s.eventId, <code class="wrap-any">{l.eventId}</code>] as [string, preact.ComponentChild]]
                : []),
              ...(l.messageId
                ? [
                    [
                      s.messageId,
                      <a href={`#/streams/trace/${l.messageId}`} onClick={close}>
                        {l.messageId}
                      </a>,
                    ] as [string, preact.ComponentChild],
                  ]
                : []),
            ]}
          />
          <div class="field">
            <span class="legend">{s.payload}</span>
            <Code
              label={s.payload}
              text={typeof l.payload === 'string' ? l.payload : JSON.stringify(l.payload, null, 2)}
            />
          </div>
          {l.headers && (
            <div class="field">
              <span class="legend">{s.headers}</span>
              <Code
                label={s.headers}
                text={Object.entries(l.headers)
                  .map(([k, v]) => `${k}: ${v.join(', ')}`)
                  .join('\n')}
              />
            </div>
          )}
        </>
      )}
    </Dialog>
  );
}

/** Shows the result of a dry run, then runs the action after confirmation. */
function ActionDialog({
  what,
  sequences,
  filter,
  close,
}: {
  what: 'redrive' | 'drop';
  sequences: number[] | undefined;
  filter: { stream?: string; consumer?: string };
  close(done: boolean): void;
}) {
  const run = what === 'drop' ? api.drop : api.redrive;
  const dryRun = useLoad(() => run(sequences ? { sequences } : filter, true), []);
  const [results, setResults] = useState<LetterResult[]>();
  const shown = results ?? dryRun.data;
  const failed = results?.filter((r) => r.result === 'failed').length ?? 0;
  const { busy, error, submit } = useSubmit(async () => {
    const shown = dryRun.data!.map((r) => r.sequence); // not the filter: what is given up again meanwhile would match it too
    const done = await run({ ...(!sequences && filter), sequences: shown }, false);
    setResults(done);
    if (done.some((r) => r.result === 'failed')) return;
    toast(what === 'drop' ? s.dropped(done.length) : s.redriven(done.length));
    close(true);
  }, !!shown?.length);
  return (
    <Dialog
      title={what === 'drop' ? s.dropTitle : s.redriveTitle}
      wide
      close={() => close(!!results)}
      onSubmit={submit}
      footer={
        <>
          <Button onClick={() => close(!!results)}>{results ? strings.close : strings.cancel}</Button>
          {!results && (
            <Button type="submit" kind={what === 'drop' ? 'danger' : 'primary'} busy={busy} disabled={!shown?.length}>
              {what === 'drop' ? s.dropAction(shown?.length ?? 0) : s.redriveAction(shown?.length ?? 0)}
            </Button>
          )}
        </>
      }
    >
      <p>{what === 'drop' ? s.dropLead : s.redriveLead}</p>
      {!!error && <Notice kind="bad">{messageOf(error)}</Notice>}
      {!shown && (dryRun.error ? <Failed error={dryRun.error} retry={dryRun.reload} /> : <Skeleton rows={3} />)}
      {failed > 0 && <Notice kind="bad">{s.someFailed(failed)}</Notice>}
      {shown && !results && <Notice kind="info">{s.dryRun(count(shown.length, s.letterForms))}</Notice>}
      {shown && (
        <div class="result-list">
          <Table label={s.results} class="flat" numbers={[0]} head={['#', s.event, s.consumer, s.result]}>
            {shown.map((r) => (
              <tr key={r.sequence}>
                <td class="num">{r.sequence}</td>
                <td>{r.eventType || s.unknownEvent}</td>
                <td>{r.consumer}</td>
                <td>
                  <Badge kind={r.result === 'failed' ? 'bad' : results ? 'good' : 'plain'}>{r.result}</Badge>
                  {r.error && <div class="sub">{r.error}</div>}
                </td>
              </tr>
            ))}
          </Table>
        </div>
      )}
    </Dialog>
  );
}
