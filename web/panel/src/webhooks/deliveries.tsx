import { useEffect, useState } from 'preact/hooks';
import { webhooks as api } from '../api/api.js';
import { messageOf } from '../api/client.js';
import type { Delivery, WebhookEndpoint } from '../api/types.js';
import { count, formatFull } from '../lib/format.js';
import { useLoad, usePages } from '../lib/load.js';
import { setQuery, useRoute } from '../lib/router.js';
import { strings } from '../strings.js';
import { Button } from '../ui/button.js';
import { Code } from '../ui/copy.js';
import { Confirm, Dialog } from '../ui/dialog.js';
import { Field, Select } from '../ui/field.js';
import { Facts, Page, Table } from '../ui/page.js';
import { Badge, Empty, Failed, Notice, Skeleton } from '../ui/states.js';
import { toast } from '../ui/toast.js';
import { indented } from './headers.js';

const s = strings.webhooks;

const kinds = { pending: 'warn', delivered: 'good', failed: 'bad' } as const;

/** The polling interval while a delivery is pending, in milliseconds. */
const POLL_INTERVAL = 2000;

/** The delivery log of an endpoint. */
export function Deliveries({ endpoint, types }: { endpoint: WebhookEndpoint; types: string[] }) {
  const { query } = useRoute();
  const status = query.get('status') ?? '';
  const eventType = query.get('eventType') ?? '';
  const pages = usePages(
    (cursor, signal) => api.deliveries(endpoint.id, { status, eventType }, cursor, signal),
    [endpoint.id, status, eventType],
  );
  const [shown, setShown] = useState<string>();
  const [replaying, setReplaying] = useState(false);
  const waiting = pages.items.some((d) => d.status === 'pending');
  useEffect(() => {
    if (!waiting || pages.loading || pages.items.length > 50) return;
    const timer = setTimeout(() => pages.reload(), POLL_INTERVAL);
    return () => clearTimeout(timer);
  }, [waiting, pages.loading, pages.items]);
  const act = async (run: () => Promise<unknown>, confirmation: string) => {
    try {
      await run();
      toast(confirmation);
      pages.reload();
    } catch (err) {
      toast(messageOf(err), 'bad');
    }
  };
  const open = pages.items.find((d) => d.id === shown);
  return (
    <Page
      wide
      title={s.logTitle}
      lead={<span class="wrap-any">{endpoint.url}</span>}
      back={{ href: '#/webhooks', label: s.title }}
      actions={
        <>
          <Button icon="refresh" onClick={pages.reload}>
            {s.refresh}
          </Button>
          <Button
            icon="send"
            disabled={endpoint.status === 'disabled'}
            onClick={() => void act(() => api.test(endpoint.id), s.tested)}
          >
            {s.test}
          </Button>
        </>
      }
    >
      <div class="toolbar">
        <Field label={s.status} class="inline">
          <Select
            value={status}
            change={(v) => setQuery({ status: v })}
            options={[
              { value: '', label: s.anyStatus },
              ...Object.entries(s.deliveryStatuses).map(([value, label]) => ({ value, label })),
            ]}
          />
        </Field>
        <Field label={s.event} class="inline">
          <Select
            value={eventType}
            change={(v) => setQuery({ eventType: v })}
            options={[
              { value: '', label: s.allEvents },
              ...[...types, 'webhook.test'].map((value) => ({ value, label: value })),
            ]}
          />
        </Field>
        <span class="grow-1" />
        <Button kind="primary" icon="refresh" onClick={() => setReplaying(true)}>
          {s.replayFailed}
        </Button>
      </div>
      {!pages.ready && pages.loading && <Skeleton />}
      {!pages.ready && !!pages.error && <Failed error={pages.error} retry={pages.reload} />}
      {pages.ready && !pages.items.length && (
        <Empty icon="history" title={s.noDeliveries}>
          {s.noDeliveriesLead}
        </Empty>
      )}
      {pages.items.length > 0 && (
        <Table
          label={s.logTitle}
          numbers={[3]}
          head={[s.when, s.event, s.status, s.attempts, s.answer, <span class="sr">{strings.actions}</span>]}
        >
          {pages.items.map((d) => (
            <tr key={d.id}>
              <td class="nowrap">{formatFull(d.createdAt)}</td>
              <td>
                <button type="button" class="textbutton" onClick={() => setShown(d.id)}>
                  {d.eventType}
                </button>
                <div class="sub wrap-any">{d.id}</div>
              </td>
              <td>
                <Badge kind={kinds[d.status]}>{s.deliveryStatuses[d.status]}</Badge>
                {d.reason && <div class="sub">{s.reasons[d.reason] ?? d.reason}</div>}
                {d.nextAttemptAt && <div class="sub">{s.next(formatFull(d.nextAttemptAt))}</div>}
              </td>
              <td class="num">{d.attempts.length}</td>
              <td>{answerOf(d.attempts.at(-1))}</td>
              <td class="end">
                {d.status !== 'pending' && (
                  <Button
                    small
                    icon="refresh"
                    aria-label={s.replayOf(d.eventType)}
                    onClick={() => void act(() => api.replay(endpoint.id, { id: d.id }), s.replayed(1))}
                  >
                    {s.replay}
                  </Button>
                )}
              </td>
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
      {open && <DeliveryDialog delivery={open} close={() => setShown(undefined)} />}
      {replaying && (
        <Replay
          endpoint={endpoint}
          eventType={eventType}
          close={() => setReplaying(false)}
          done={(n) => {
            toast(s.replayed(n));
            pages.reload();
          }}
        />
      )}
    </Page>
  );
}

const answerOf = (a: Delivery['attempts'][number] | undefined) =>
  a ? `${a.statusCode ?? a.error ?? ''} · ${s.milliseconds(a.durationMs)}` : '–';

function DeliveryDialog({ delivery: d, close }: { delivery: Delivery; close(): void }) {
  return (
    <Dialog title={d.eventType} wide close={close} footer={<Button onClick={close}>{strings.close}</Button>}>
      <Facts
        facts={[
          ['webhook-id', <code class="wrap-any">{d.id}</code>],
          [s.when, formatFull(d.createdAt)],
          [s.status, <Badge kind={kinds[d.status]}>{s.deliveryStatuses[d.status]}</Badge>],
        ]}
      />
      <div class="field">
        <span class="legend">{s.request}</span>
        <Code label={s.request} text={indented(d.body)} />
      </div>
      <div class="field">
        <span class="legend">{s.attempts}</span>
        {!d.attempts.length && <p class="faint">{s.noAttempts}</p>}
        {d.attempts.length > 0 && (
          <Table label={s.attempts} class="flat" numbers={[1]} head={[s.when, s.duration, s.answer]}>
            {d.attempts.map((a) => (
              <tr key={a.at}>
                <td class="nowrap">
                  {formatFull(a.at)}
                  <div class="sub wrap-any">{a.url}</div>
                </td>
                <td class="num">{s.milliseconds(a.durationMs)}</td>
                <td class="wrap-any">
                  <b>{a.statusCode ?? s.noAnswer}</b> {a.error}
                  {a.answer && <div class="sub">{a.answer}</div>}
                </td>
              </tr>
            ))}
          </Table>
        )}
      </div>
    </Dialog>
  );
}

/** Replays failed deliveries. It first shows how many deliveries that affects. */
function Replay({
  endpoint,
  eventType,
  close,
  done,
}: {
  endpoint: WebhookEndpoint;
  eventType: string;
  close(): void;
  done(n: number): void;
}) {
  const filter = { status: 'failed' as const, ...(eventType && { eventType }) };
  const dryRun = useLoad(() => api.replay(endpoint.id, { ...filter, dryRun: true }), []);
  if (!dryRun.data)
    return (
      <Dialog title={s.replayFailed} close={close}>
        {dryRun.error ? <Failed error={dryRun.error} retry={dryRun.reload} /> : <Skeleton rows={2} />}
      </Dialog>
    );
  const n = dryRun.data.length;
  if (!n)
    return (
      <Dialog title={s.replayFailed} close={close} footer={<Button onClick={close}>{strings.close}</Button>}>
        <p>{s.nothingFailed}</p>
      </Dialog>
    );
  return (
    <Confirm
      title={s.replayFailed}
      action={s.replay}
      danger={false}
      close={close}
      confirm={async () => done((await api.replay(endpoint.id, filter)).length)}
    >
      <p>{s.replayLead(count(n, s.deliveryForms))}</p>
    </Confirm>
  );
}
