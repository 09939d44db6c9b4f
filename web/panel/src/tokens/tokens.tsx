import { useState } from 'preact/hooks';
import { tokens as api } from '../api/api.js';
import type { NewToken, Token } from '../api/types.js';
import { formatAgo, formatDate, formatFull } from '../lib/format.js';
import { useLoad } from '../lib/load.js';
import { useStore } from '../lib/store.js';
import { app } from '../state.js';
import { strings } from '../strings.js';
import { Button } from '../ui/button.js';
import { Code } from '../ui/copy.js';
import { Confirm, Dialog, FormDialog } from '../ui/dialog.js';
import { Field, Select, TextInput } from '../ui/field.js';
import { Menu } from '../ui/menu.js';
import { Page, Table } from '../ui/page.js';
import { Rotate } from '../ui/rotate.js';
import { Badge, Empty, Failed, Notice, Skeleton } from '../ui/states.js';
import { useSubmit } from '../ui/submit.js';
import { toast } from '../ui/toast.js';
import { curlFor } from './curl.js';

const s = strings.tokens;

const kinds = { active: 'good', expired: 'warn', revoked: 'bad' } as const;

export default function Tokens() {
  const list = useLoad((signal) => api.list(signal), []);
  const [creating, setCreating] = useState(false);
  const [rotating, setRotating] = useState<Token>();
  const [revoking, setRevoking] = useState<Token>();
  const [secret, setSecret] = useState<NewToken>();
  const put = (...changed: Token[]) =>
    list.set((old) => [
      ...changed.filter((c) => !old.some((t) => t.id === c.id)),
      ...old.map((t) => changed.find((c) => c.id === t.id) ?? t),
    ]);
  const made = (n: NewToken) => {
    setCreating(false);
    setRotating(undefined);
    setSecret(n);
    put(n.token, ...(n.replaced ? [n.replaced] : []));
  };
  const all = list.data && [...list.data].sort((a, b) => rank(a) - rank(b) || (a.createdAt < b.createdAt ? 1 : -1));
  return (
    <Page
      title={s.title}
      lead={s.lead}
      actions={
        <Button kind="primary" icon="plus" onClick={() => setCreating(true)}>
          {s.create}
        </Button>
      }
    >
      {!all && list.loading && <Skeleton />}
      {!all && !!list.error && <Failed error={list.error} retry={list.reload} />}
      {all?.length === 0 && (
        <Empty
          icon="key"
          title={s.empty}
          action={
            <Button kind="primary" icon="plus" onClick={() => setCreating(true)}>
              {s.create}
            </Button>
          }
        >
          {s.emptyLead}
        </Empty>
      )}
      {!!all?.length && (
        <Table
          label={s.title}
          head={[
            s.name,
            s.prefix,
            s.created,
            s.lastUsed,
            s.expires,
            s.status,
            <span class="sr">{strings.actions}</span>,
          ]}
        >
          {all.map((t) => (
            <tr key={t.id} class={t.status === 'active' ? undefined : 'off'}>
              <td class="strong wrap-any">{t.name}</td>
              <td>
                <code>{t.prefix}…</code>
              </td>
              <td class="nowrap">
                <time dateTime={t.createdAt} title={formatFull(t.createdAt)}>
                  {formatDate(t.createdAt)}
                </time>
                {t.createdBy && <div class="sub">{t.createdBy}</div>}
              </td>
              <td class="nowrap">
                {t.lastUsedAt ? (
                  <time dateTime={t.lastUsedAt} title={formatFull(t.lastUsedAt)}>
                    {formatAgo(t.lastUsedAt)}
                  </time>
                ) : (
                  <span class="faint">{s.never}</span>
                )}
              </td>
              <td class="nowrap">
                {t.expiresAt ? (
                  <time dateTime={t.expiresAt} title={formatFull(t.expiresAt)}>
                    {formatFull(t.expiresAt)}
                  </time>
                ) : (
                  <span class="faint">{s.noExpiry}</span>
                )}
              </td>
              <td>
                <Badge kind={kinds[t.status]}>{s.statuses[t.status]}</Badge>
              </td>
              <td class="end">
                {t.status === 'active' && (
                  <Menu
                    label={s.actionsFor(t.name)}
                    items={[
                      { label: s.rotate, icon: 'refresh', act: () => setRotating(t) },
                      { label: s.revoke, icon: 'trash', danger: true, act: () => setRevoking(t) },
                    ]}
                  />
                )}
              </td>
            </tr>
          ))}
        </Table>
      )}
      <p class="faint">{s.effect}</p>
      {creating && <Create close={() => setCreating(false)} made={made} />}
      {rotating && (
        <Rotate
          title={s.rotateTitle(rotating.name)}
          text={s}
          close={() => setRotating(undefined)}
          rotate={async (overlap) => made(await api.rotate(rotating.id, overlap))}
        />
      )}
      {revoking && (
        <Confirm
          title={s.revokeTitle}
          action={s.revoke}
          close={() => setRevoking(undefined)}
          confirm={async () => {
            put(await api.revoke(revoking.id));
            toast(s.revoked(revoking.name));
          }}
        >
          <p>{s.revokeLead(revoking.name)}</p>
        </Confirm>
      )}
      {secret && <Secret made={secret} close={() => setSecret(undefined)} />}
    </Page>
  );
}

const rank = (t: Token) => ({ active: 0, expired: 1, revoked: 2 })[t.status];

const DAY = 86_400_000;

function Create({ close, made }: { close(): void; made(n: NewToken): void }) {
  const [name, setName] = useState('');
  const [days, setDays] = useState('');
  const [date, setDate] = useState('');
  const form = useSubmit(
    async () => {
      const end =
        days === 'date' ? new Date(`${date}T23:59:59`) : days ? new Date(Date.now() + Number(days) * DAY) : undefined;
      made(await api.create({ name: name.trim(), ...(end && { expiresAt: end.toISOString() }) }));
    },
    !!name.trim() && (days !== 'date' || !!date),
  );
  const { errors, tried } = form;
  return (
    <FormDialog title={s.create} close={close} form={form} action={s.createAction}>
      <Field
        label={s.name}
        hint={s.nameHint}
        required
        error={errors.name ?? (tried && !name.trim() ? strings.required : undefined)}
      >
        <TextInput value={name} change={setName} maxLength={100} />
      </Field>
      <Field label={s.expires} error={errors.expiresAt}>
        <Select
          value={days}
          change={setDays}
          options={[
            { value: '', label: s.noExpiry },
            ...[30, 90, 365].map((d) => ({ value: String(d), label: s.inDays(d) })),
            { value: 'date', label: s.onDate },
          ]}
        />
      </Field>
      {days === 'date' && (
        <Field label={s.date} required error={tried && !date ? strings.required : undefined}>
          <TextInput
            type="date"
            value={date}
            change={setDate}
            min={new Date(Date.now() + DAY).toISOString().slice(0, 10)}
          />
        </Field>
      )}
    </FormDialog>
  );
}

function Secret({ made: { token, secret, replaced }, close }: { made: NewToken; close(): void }) {
  const { meta } = useStore(app);
  return (
    <Dialog
      title={s.secretTitle(token.name)}
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
      <div class="field">
        <span class="legend">{s.secret}</span>
        <Code text={secret} label={s.secret} />
      </div>
      <div class="field">
        <span class="legend">{s.curl}</span>
        <Code text={curlFor(meta?.clientBaseUrl ?? '', secret)} label={s.curl} />
        <p class="hint">{s.curlHint}</p>
      </div>
      {replaced?.expiresAt && <Notice>{s.oldEnds(formatFull(replaced.expiresAt))}</Notice>}
    </Dialog>
  );
}
