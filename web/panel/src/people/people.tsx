import { useState } from 'preact/hooks';
import { people as api } from '../api/api.js';
import { messageOf } from '../api/client.js';
import type { Role, User } from '../api/types.js';
import { formatAgo, formatFull, initials } from '../lib/format.js';
import { useLoad } from '../lib/load.js';
import { useStore } from '../lib/store.js';
import { app } from '../state.js';
import { strings } from '../strings.js';
import { Button } from '../ui/button.js';
import { Code } from '../ui/copy.js';
import { Confirm, Dialog, FormDialog } from '../ui/dialog.js';
import { Field, Segmented, Select, TextInput } from '../ui/field.js';
import { Menu } from '../ui/menu.js';
import { Page, Table } from '../ui/page.js';
import { Avatar, Badge, Empty, Failed, Notice, Skeleton } from '../ui/states.js';
import { useSubmit } from '../ui/submit.js';
import { toast } from '../ui/toast.js';
import { CompanyDialog } from './company.js';
import { SessionList } from './sessions.js';

const s = strings.people;
const statuses = { active: 'good', invited: 'warn', disabled: 'bad' } as const;

export default function People() {
  const { session, company } = useStore(app);
  const operator = session!.user.role === 'operator';
  const [of, setOf] = useState<'company' | 'operators'>(company ? 'company' : 'operators');
  const { data, error, loading, reload, set } = useLoad(
    (signal) => (of === 'operators' ? api.operators(signal) : api.users(signal)),
    [of],
  );
  const [inviting, setInviting] = useState(false);
  const [link, setLink] = useState<{ user: User; invitationUrl: string }>();
  const [editing, setEditing] = useState<User>();
  const [sessions, setSessions] = useState<User>();
  const [removing, setRemoving] = useState<User>();
  const [renaming, setRenaming] = useState(false);
  const me = session!.user;
  const put = (u: User) => {
    if ((u.role === 'operator') === (of === 'operators'))
      set((old) => (old.some((x) => x.id === u.id) ? old.map((x) => (x.id === u.id ? u : x)) : [...old, u]));
  };
  const act = async (run: () => Promise<unknown>, confirmation: string) => {
    try {
      await run();
      toast(confirmation);
    } catch (err) {
      toast(messageOf(err), 'bad');
    }
  };
  return (
    <Page
      title={s.title}
      lead={s.lead}
      actions={
        <>
          {company && (
            <Button icon="edit" onClick={() => setRenaming(true)}>
              {s.renameCompany}
            </Button>
          )}
          <Button kind="primary" icon="mail" onClick={() => setInviting(true)}>
            {s.invite}
          </Button>
        </>
      }
    >
      {operator && company && (
        <div>
          <Segmented
            label={s.title}
            value={of}
            change={(v) => setOf(v)}
            options={[
              { value: 'company', label: company.name },
              { value: 'operators', label: s.operators },
            ]}
          />
        </div>
      )}
      {!data && loading && <Skeleton />}
      {!data && !!error && <Failed error={error} retry={reload} />}
      {data?.length === 0 && (
        <Empty
          icon="people"
          title={s.empty}
          action={
            <Button kind="primary" icon="mail" onClick={() => setInviting(true)}>
              {s.invite}
            </Button>
          }
        >
          {s.emptyLead}
        </Empty>
      )}
      {!!data?.length && (
        <Table
          label={s.title}
          head={[s.person, s.role, s.status, s.twoFactor, s.lastSignIn, <span class="sr">{strings.actions}</span>]}
        >
          {data.map((u) => (
            <tr key={u.id} class={u.status === 'disabled' ? 'off' : undefined}>
              <td>
                <div class="row-flex nowrap">
                  <Avatar name={u.id} letters={initials(u.name || u.email)} size="small" />
                  <div>
                    <span class="strong">{u.name || u.email}</span>
                    {u.id === me.id && <span class="faint"> {s.you}</span>}
                    <div class="sub">{u.email}</div>
                  </div>
                </div>
              </td>
              <td>{strings.roles[u.role]}</td>
              <td>
                <Badge kind={statuses[u.status]}>{s.statuses[u.status]}</Badge>
                {u.status === 'invited' && u.invitationExpiresAt && (
                  <div class="sub">{s.until(formatFull(u.invitationExpiresAt))}</div>
                )}
              </td>
              <td>{u.totp ? <Badge kind="good">{s.on}</Badge> : <span class="faint">{s.off}</span>}</td>
              <td class="nowrap">
                {u.lastSignInAt ? (
                  <time title={formatFull(u.lastSignInAt)} dateTime={u.lastSignInAt}>
                    {formatAgo(u.lastSignInAt)}
                  </time>
                ) : (
                  <span class="faint">{strings.tokens.never}</span>
                )}
              </td>
              <td class="end">
                <Menu
                  label={s.actionsFor(u.name || u.email)}
                  items={[
                    { label: s.edit, icon: 'edit', act: () => setEditing(u) },
                    u.status === 'invited' && {
                      label: s.inviteAgain,
                      icon: 'mail',
                      act: () =>
                        void api.inviteAgain(u.id).then(
                          (a) => {
                            put(a.user);
                            setLink(a);
                          },
                          (err: unknown) => toast(messageOf(err), 'bad'),
                        ),
                    },
                    u.status !== 'invited' && { label: s.sessions, icon: 'display', act: () => setSessions(u) },
                    u.status === 'active' &&
                      u.id !== me.id && {
                        label: s.disable,
                        icon: 'pause',
                        act: () => void act(async () => put(await api.change(u.id, { disabled: true })), s.disabled),
                      },
                    u.status === 'disabled' && {
                      label: s.enable,
                      icon: 'play',
                      act: () => void act(async () => put(await api.change(u.id, { disabled: false })), s.enabled),
                    },
                    u.id !== me.id && { label: s.remove, icon: 'trash', danger: true, act: () => setRemoving(u) },
                  ]}
                />
              </td>
            </tr>
          ))}
        </Table>
      )}
      {inviting && (
        <Invite
          operator={operator}
          hasCompany={!!company}
          first={of === 'operators' ? 'operator' : 'agent'}
          close={() => setInviting(false)}
          done={(a) => {
            setInviting(false);
            put(a.user);
            setLink(a);
          }}
        />
      )}
      {link && (
        <Dialog
          title={s.linkTitle(link.user.email)}
          wide
          close={() => setLink(undefined)}
          footer={
            <Button kind="primary" data-autofocus onClick={() => setLink(undefined)}>
              {strings.done}
            </Button>
          }
        >
          <Notice kind="warn">{s.linkOnce}</Notice>
          <Code text={link.invitationUrl} label={s.link} />
        </Dialog>
      )}
      {editing && <Edit user={editing} close={() => setEditing(undefined)} put={put} />}
      {sessions && <Sessions user={sessions} close={() => setSessions(undefined)} />}
      {removing && (
        <Confirm
          title={s.removeTitle}
          action={s.remove}
          close={() => setRemoving(undefined)}
          confirm={async () => {
            await api.remove(removing.id);
            set((old) => old.filter((u) => u.id !== removing.id));
            toast(s.removed);
          }}
        >
          <p>{s.removeLead(removing.name || removing.email)}</p>
        </Confirm>
      )}
      {renaming && company && <CompanyDialog company={company} close={() => setRenaming(false)} />}
    </Page>
  );
}

const roleOptions = (operator: boolean, company: boolean) =>
  (['owner', 'developer', 'agent', 'operator'] as Role[])
    .filter((r) => (r === 'operator' ? operator : company))
    .map((r) => ({ value: r, label: strings.roles[r] }));

function Invite({
  operator,
  hasCompany,
  first,
  close,
  done,
}: {
  operator: boolean;
  hasCompany: boolean;
  first: Role;
  close(): void;
  done(a: { user: User; invitationUrl: string }): void;
}) {
  const [email, setEmail] = useState('');
  const [name, setName] = useState('');
  const [role, setRole] = useState<Role>(first);
  const form = useSubmit(
    async () => done(await api.invite({ email: email.trim(), role, ...(name.trim() && { name: name.trim() }) })),
    !!email.trim(),
  );
  const { errors, tried } = form;
  return (
    <FormDialog title={s.invite} close={close} form={form} action={s.inviteAction}>
      <Field label={s.email} required error={errors.email ?? (tried && !email.trim() ? strings.required : undefined)}>
        <TextInput type="email" value={email} change={setEmail} />
      </Field>
      <Field label={s.name} optional error={errors.name}>
        <TextInput value={name} change={setName} />
      </Field>
      <Field label={s.role} hint={s.roleHints[role]} error={errors.role}>
        <Select value={role} change={(r) => setRole(r as Role)} options={roleOptions(operator, hasCompany)} />
      </Field>
    </FormDialog>
  );
}

function Edit({ user, close, put }: { user: User; close(): void; put(u: User): void }) {
  const [name, setName] = useState(user.name);
  const [role, setRole] = useState<Role>(user.role);
  const form = useSubmit(async () => {
    put(
      await api.change(user.id, {
        ...(name.trim() !== user.name && { name: name.trim() }),
        ...(role !== user.role && { role }),
      }),
    );
    toast(s.changed);
    close();
  });
  const { errors } = form;
  return (
    <FormDialog title={s.editTitle(user.email)} close={close} form={form} action={strings.save}>
      <Field label={s.name} error={errors.name}>
        <TextInput value={name} change={setName} />
      </Field>
      <Field label={s.role} hint={s.roleHints[role]} error={errors.role}>
        <Select
          value={role}
          disabled={user.role === 'operator'}
          change={(r) => setRole(r as Role)}
          options={
            user.role === 'operator' ? [{ value: 'operator', label: strings.roles.operator }] : roleOptions(false, true)
          }
        />
      </Field>
    </FormDialog>
  );
}

function Sessions({ user, close }: { user: User; close(): void }) {
  const { data, error, reload } = useLoad((signal) => api.sessions(user.id, signal), [user.id]);
  const [busy, setBusy] = useState(false);
  const end = async () => {
    setBusy(true);
    try {
      await api.endSessions(user.id);
      toast(s.signedOutEverywhere);
      close();
    } catch (err) {
      toast(messageOf(err), 'bad');
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={s.sessionsOf(user.name || user.email)}
      wide
      close={close}
      footer={
        <>
          <Button onClick={close}>{strings.close}</Button>
          <Button kind="danger" icon="logout" busy={busy} disabled={!data?.length} onClick={() => void end()}>
            {s.signOutEverywhere}
          </Button>
        </>
      }
    >
      {!data && (error ? <Failed error={error} retry={reload} /> : <Skeleton rows={3} />)}
      {data && <SessionList sessions={data} />}
    </Dialog>
  );
}
