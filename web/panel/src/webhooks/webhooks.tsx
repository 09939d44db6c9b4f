import { useEffect, useRef, useState } from 'preact/hooks';
import { webhooks as api } from '../api/api.js';
import { messageOf } from '../api/client.js';
import type { NewWebhookEndpoint, WebhookEndpoint, Webhooks } from '../api/types.js';
import { formatDate, formatFull } from '../lib/format.js';
import { useLoad } from '../lib/load.js';
import { navigate, useRoute } from '../lib/router.js';
import { strings } from '../strings.js';
import { Button } from '../ui/button.js';
import { Code } from '../ui/copy.js';
import { Confirm, Dialog, FormDialog } from '../ui/dialog.js';
import { Field, TextInput } from '../ui/field.js';
import { Menu } from '../ui/menu.js';
import { Page, Table } from '../ui/page.js';
import { Rotate } from '../ui/rotate.js';
import { Badge, Empty, Failed, Notice, Skeleton } from '../ui/states.js';
import { useSubmit } from '../ui/submit.js';
import { toast } from '../ui/toast.js';
import { Deliveries } from './deliveries.js';
import { Editor } from './editor.js';

const s = strings.webhooks;

const kinds = { enabled: 'good', failing: 'warn', disabled: 'bad' } as const;

/** The list of endpoints, or the delivery log of one endpoint. */
export default function WebhooksSection() {
  const { parts } = useRoute();
  const loaded = useLoad((signal) => api.list(signal), []);
  const { data, error, loading, reload, set } = loaded;
  // Reload, because the state of an endpoint may have changed while its log was open.
  const at = parts[1] ?? '';
  const before = useRef(at);
  useEffect(() => {
    if (before.current !== at) reload();
    before.current = at;
  }, [at]);
  if (!data)
    return (
      <Page title={s.title} lead={s.lead}>
        {loading ? <Skeleton /> : <Failed error={error} retry={reload} />}
      </Page>
    );
  const put = (e: WebhookEndpoint) =>
    set((old) => ({
      ...old,
      endpoints: old.endpoints.some((x) => x.id === e.id)
        ? old.endpoints.map((x) => (x.id === e.id ? e : x))
        : [...old.endpoints, e],
    }));
  const one = at && data.endpoints.find((e) => e.id === at);
  if (one) return <Deliveries key={one.id} endpoint={one} types={data.types} />;
  return (
    <Endpoints
      data={data}
      put={put}
      drop={(id) => set((old) => ({ ...old, endpoints: old.endpoints.filter((e) => e.id !== id) }))}
      retain={(retentionDays) => set((old) => ({ ...old, retentionDays }))}
    />
  );
}

type Action = { what: 'edit' | 'rotate' | 'remove' | 'disable'; endpoint: WebhookEndpoint };

function Endpoints({
  data,
  put,
  drop,
  retain,
}: {
  data: Webhooks;
  put(e: WebhookEndpoint): void;
  drop(id: string): void;
  retain(days: number): void;
}) {
  const [creating, setCreating] = useState(false);
  const [retention, setRetention] = useState(false);
  const [action, setAction] = useState<Action>();
  const [created, setCreated] = useState<NewWebhookEndpoint>();
  const close = () => {
    setAction(undefined);
    setCreating(false);
  };
  const show = (m: NewWebhookEndpoint) => {
    close();
    put(m.endpoint);
    setCreated(m);
  };
  const run = async (act: () => Promise<unknown>, confirmation: string) => {
    try {
      await act();
      toast(confirmation);
    } catch (err) {
      toast(messageOf(err), 'bad');
    }
  };
  const test = (e: WebhookEndpoint) =>
    run(async () => {
      await api.test(e.id);
      navigate(`/webhooks/${e.id}`);
    }, s.tested);
  const create = (
    <Button kind="primary" icon="plus" onClick={() => setCreating(true)}>
      {s.create}
    </Button>
  );
  return (
    <Page
      title={s.title}
      lead={s.lead}
      actions={
        <>
          <Button icon="clock" onClick={() => setRetention(true)}>
            {s.retention}
          </Button>
          {create}
        </>
      }
    >
      {!data.endpoints.length && (
        <Empty icon="webhook" title={s.empty} action={create}>
          {s.emptyLead}
        </Empty>
      )}
      {data.endpoints.length > 0 && (
        <Table
          label={s.title}
          head={[s.url, s.events, s.signatures, s.created, s.status, <span class="sr">{strings.actions}</span>]}
        >
          {data.endpoints.map((e) => (
            <tr key={e.id} class={e.status === 'disabled' ? 'off' : undefined}>
              <td class="wrap-any">
                <a class="strong" href={`#/webhooks/${e.id}`}>
                  {e.url}
                </a>
                {e.description && <div class="sub">{e.description}</div>}
              </td>
              <td>
                {e.events.length ? (
                  e.events.map((t) => <div key={t}>{t}</div>)
                ) : (
                  <span class="faint">{s.allEvents}</span>
                )}
              </td>
              <td class="nowrap">
                {e.signatures.join(', ')}
                {e.ordered && <div class="sub">{s.ordered}</div>}
              </td>
              <td class="nowrap">
                <time dateTime={e.createdAt} title={formatFull(e.createdAt)}>
                  {formatDate(e.createdAt)}
                </time>
              </td>
              <td>
                <Badge kind={kinds[e.status]}>{s.statuses[e.status]}</Badge>
                <div class="sub">{reasonOf(e)}</div>
              </td>
              <td class="end">
                <Menu
                  label={s.actionsFor(e.url)}
                  items={[
                    { label: s.log, icon: 'history', act: () => navigate(`/webhooks/${e.id}`) },
                    e.status !== 'disabled' && { label: s.test, icon: 'send', act: () => void test(e) },
                    { label: s.edit, icon: 'edit', act: () => setAction({ what: 'edit', endpoint: e }) },
                    { label: s.rotate, icon: 'refresh', act: () => setAction({ what: 'rotate', endpoint: e }) },
                    e.status === 'disabled'
                      ? {
                          label: s.enable,
                          icon: 'play',
                          act: () => void run(async () => put(await api.enable(e.id)), s.enabled),
                        }
                      : { label: s.disable, icon: 'pause', act: () => setAction({ what: 'disable', endpoint: e }) },
                    {
                      label: s.remove,
                      icon: 'trash',
                      danger: true,
                      act: () => setAction({ what: 'remove', endpoint: e }),
                    },
                  ]}
                />
              </td>
            </tr>
          ))}
        </Table>
      )}
      {creating && <Editor types={data.types} close={close} created={show} saved={put} />}
      {action?.what === 'edit' && (
        <Editor
          endpoint={action.endpoint}
          types={data.types}
          close={close}
          created={show}
          saved={(e) => {
            put(e);
            close();
            toast(s.saved);
          }}
        />
      )}
      {action?.what === 'rotate' && (
        <Rotate
          title={s.rotateTitle}
          text={s}
          close={close}
          rotate={async (overlap) => show(await api.rotate(action.endpoint.id, overlap))}
        />
      )}
      {action?.what === 'disable' && (
        <Confirm
          title={s.disableTitle}
          action={s.disable}
          close={close}
          confirm={async () => put(await api.disable(action.endpoint.id))}
        >
          <p>{s.disableLead}</p>
        </Confirm>
      )}
      {action?.what === 'remove' && (
        <Confirm
          title={s.removeTitle}
          action={s.remove}
          close={close}
          confirm={async () => {
            await api.remove(action.endpoint.id);
            drop(action.endpoint.id);
            toast(s.removed);
          }}
        >
          <p class="wrap-any">{s.removeLead(action.endpoint.url)}</p>
        </Confirm>
      )}
      {retention && <Retention days={data.retentionDays} close={() => setRetention(false)} saved={retain} />}
      {created && <Secrets created={created} close={() => setCreated(undefined)} />}
    </Page>
  );
}

function reasonOf(e: WebhookEndpoint): string {
  if (e.disabledReason) return s.reasons[e.disabledReason] ?? e.disabledReason;
  if (!e.failingSince) return '';
  return s.failingSince(formatFull(e.failingSince)) + (e.warnings ? ` ${s.warnings(e.warnings)}` : '');
}

function Retention({ days, close, saved }: { days: number; close(): void; saved(days: number): void }) {
  const [text, setText] = useState(days ? String(days) : '');
  const form = useSubmit(async () => {
    saved(await api.retention(Number(text)));
    toast(s.saved);
    close();
  });
  return (
    <FormDialog title={s.retention} close={close} form={form} action={strings.save} notice={false}>
      <p>{s.retentionLead}</p>
      <Field label={s.days} hint={s.daysHint} error={form.error ? messageOf(form.error) : undefined}>
        <TextInput class="short" type="number" min={1} max={365} value={text} change={setText} />
      </Field>
    </FormDialog>
  );
}

function Secrets({ created: { endpoint, secrets }, close }: { created: NewWebhookEndpoint; close(): void }) {
  return (
    <Dialog
      title={s.secretTitle}
      close={close}
      dismissible={false}
      wide
      footer={
        <Button kind="primary" onClick={close} data-autofocus>
          {s.secretDone}
        </Button>
      }
    >
      <Notice kind="warn">{s.secretOnce}</Notice>
      <p class="wrap-any">{s.secretLead(endpoint.url)}</p>
      {secrets.map((secret) => {
        const label = secret.startsWith('whpk_') ? s.publicKey : s.secret;
        return (
          <div key={secret} class="field">
            <span class="legend">{label}</span>
            <Code text={secret} label={label} />
          </div>
        );
      })}
    </Dialog>
  );
}
