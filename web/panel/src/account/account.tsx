import { useState } from 'preact/hooks';
import { session as api } from '../api/api.js';
import { isCode, messageOf } from '../api/client.js';
import { useLoad } from '../lib/load.js';
import { useStore } from '../lib/store.js';
import { SessionList } from '../people/sessions.js';
import { MIN_PASSWORD } from '../signin/invitation.js';
import { app, updateSession, signedOut } from '../state.js';
import { strings } from '../strings.js';
import { Button } from '../ui/button.js';
import { Code } from '../ui/copy.js';
import { QrCode } from '../ui/qr.js';
import { RecoveryCodes } from './recovery.js';
import { Confirm, FormDialog } from '../ui/dialog.js';
import { Field, PasswordInput, TextInput } from '../ui/field.js';
import { Card, Facts, Page } from '../ui/page.js';
import { Badge, Failed, Notice, Skeleton } from '../ui/states.js';
import { useSubmit } from '../ui/submit.js';
import { toast } from '../ui/toast.js';

const s = strings.account;

export default function Account() {
  const { session } = useStore(app);
  const user = session!.user;
  const sessions = useLoad((signal) => api.all(signal), []);
  const [enabling, setEnabling] = useState(false);
  const [disabling, setDisabling] = useState(false);
  const [renewing, setRenewing] = useState(false);
  const [codes, setCodes] = useState<string[]>();
  const [leaving, setLeaving] = useState(false);
  const setTotp = (totp: boolean, recoveryCodesLeft: number) =>
    updateSession({ ...session!, recoveryCodesLeft, user: { ...user, totp } });
  const issued = (all: string[]) => {
    setCodes(all);
    setTotp(true, all.length);
  };
  return (
    <Page title={s.title}>
      <Card title={user.name || user.email}>
        <Facts
          facts={[
            [s.email, user.email],
            [s.role, strings.roles[user.role]],
            ...(session!.company ? [[s.company, session!.company.name] as [string, string]] : []),
          ]}
        />
      </Card>
      <PasswordCard done={() => sessions.reload()} />
      <Card
        title={s.totp}
        lead={s.totpLead}
        actions={user.totp ? <Badge kind="good">{s.totpOn}</Badge> : <Badge>{s.totpOff}</Badge>}
      >
        {user.totp && (
          <p class={session!.recoveryCodesLeft > 2 ? 'muted' : 'error'}>{s.recoveryLeft(session!.recoveryCodesLeft)}</p>
        )}
        <div class="row-flex">
          {user.totp ? (
            <>
              <Button onClick={() => setRenewing(true)}>{s.recoveryRenew}</Button>
              <Button onClick={() => setDisabling(true)}>{s.totpDisable}</Button>
            </>
          ) : (
            <Button kind="primary" icon="shield" onClick={() => setEnabling(true)}>
              {s.totpEnable}
            </Button>
          )}
        </div>
      </Card>
      <Card
        title={s.sessions}
        lead={s.sessionsLead}
        actions={
          <Button small icon="logout" onClick={() => setLeaving(true)}>
            {strings.people.signOutEverywhere}
          </Button>
        }
      >
        {!sessions.data &&
          (sessions.error ? <Failed error={sessions.error} retry={sessions.reload} /> : <Skeleton rows={3} />)}
        {sessions.data && (
          <SessionList
            sessions={sessions.data}
            end={(id) =>
              void api.end(id).then(
                () => {
                  sessions.set((old) => old.filter((x) => x.id !== id));
                  toast(s.sessionEnded);
                },
                (err: unknown) => toast(messageOf(err), 'bad'),
              )
            }
          />
        )}
      </Card>
      {enabling && (
        <EnableTotp
          close={() => setEnabling(false)}
          done={(all) => {
            setEnabling(false);
            issued(all);
            toast(s.totpEnabled);
          }}
        />
      )}
      {renewing && (
        <AskCode
          title={s.recoveryRenew}
          action={s.recoveryRenew}
          close={() => setRenewing(false)}
          run={async (code) => {
            issued(await api.recoveryCodes(code));
            setRenewing(false);
          }}
        />
      )}
      {codes && <RecoveryCodes codes={codes} close={() => setCodes(undefined)} />}
      {disabling && (
        <AskCode
          title={s.totpDisable}
          action={s.totpDisable}
          close={() => setDisabling(false)}
          run={async (code) => {
            await api.removeTotp(code);
            setTotp(false, 0);
            setDisabling(false);
            toast(s.totpDisabled);
          }}
        />
      )}
      {leaving && (
        <Confirm
          title={strings.people.signOutEverywhere}
          action={strings.people.signOutEverywhere}
          close={() => setLeaving(false)}
          confirm={async () => {
            await api.endAll();
            signedOut();
          }}
        >
          <p>{s.everywhereLead}</p>
        </Confirm>
      )}
    </Page>
  );
}

function PasswordCard({ done }: { done(): void }) {
  const [current, setCurrent] = useState('');
  const [next, setNext] = useState('');
  const { busy, error, errors, tried, submit } = useSubmit(
    async () => {
      updateSession(await api.password({ current, new: next }));
      setCurrent('');
      setNext('');
      toast(s.passwordChanged);
      done();
    },
    !!current && next.length >= MIN_PASSWORD,
  );
  const wrongPassword = isCode(error, 'WRONG_PASSWORD');
  return (
    <Card title={s.password} lead={s.passwordLead}>
      <form class="stack narrow" noValidate onSubmit={submit}>
        {!!error && !wrongPassword && !Object.keys(errors).length && <Notice kind="bad">{messageOf(error)}</Notice>}
        <input type="hidden" autoComplete="username" value={app.value.session!.user.email} />
        <Field
          label={s.currentPassword}
          required
          error={
            wrongPassword ? s.wrongPassword : (errors.current ?? (tried && !current ? strings.required : undefined))
          }
        >
          <PasswordInput autoComplete="current-password" value={current} change={setCurrent} />
        </Field>
        <Field
          label={s.newPassword}
          hint={strings.invitation.passwordHint(MIN_PASSWORD)}
          required
          error={
            errors.new ??
            (tried && next.length < MIN_PASSWORD ? strings.invitation.passwordShort(MIN_PASSWORD) : undefined)
          }
        >
          <PasswordInput autoComplete="new-password" value={next} change={setNext} />
        </Field>
        <div>
          <Button type="submit" busy={busy}>
            {s.changePassword}
          </Button>
        </div>
      </form>
    </Card>
  );
}

function AskPassword({
  title,
  action,
  close,
  run,
}: {
  title: string;
  action: string;
  close(): void;
  run(password: string): Promise<void>;
}) {
  const [password, setPassword] = useState('');
  const form = useSubmit(() => run(password), !!password);
  const { error } = form;
  return (
    <FormDialog title={title} close={close} form={form} action={action} notice={false}>
      <Field
        label={s.currentPassword}
        required
        error={error ? (isCode(error, 'WRONG_PASSWORD') ? s.wrongPassword : messageOf(error)) : undefined}
      >
        <PasswordInput autoComplete="current-password" value={password} change={setPassword} />
      </Field>
    </FormDialog>
  );
}

/** Asks for a code of the app, or for a recovery code. */
function AskCode({
  title,
  action,
  close,
  run,
}: {
  title: string;
  action: string;
  close(): void;
  run(code: string): Promise<void>;
}) {
  const [code, setCode] = useState('');
  const form = useSubmit(() => run(code.replace(/\s/g, '')), !!code.trim());
  return (
    <FormDialog title={title} close={close} form={form} action={action} notice={false}>
      <Field
        label={strings.signIn.code}
        hint={strings.signIn.codeHint}
        required
        error={form.error ? messageOf(form.error) : undefined}
      >
        <TextInput
          value={code}
          change={setCode}
          autoComplete="one-time-code"
          maxLength={24}
          class="code-input"
          data-autofocus
        />
      </Field>
    </FormDialog>
  );
}

/** Asks for the password, shows the secret, then asks for a code. Two-factor authentication is enabled only after a correct code. */
function EnableTotp({ close, done }: { close(): void; done(recoveryCodes: string[]): void }) {
  const [offer, setOffer] = useState<{ secret: string; uri: string; password: string }>();
  const [code, setCode] = useState('');
  const form = useSubmit(async () => {
    done(await api.confirmTotp(code.replace(/\s/g, ''), offer!.password));
  }, !!code.trim());
  if (!offer)
    return (
      <AskPassword
        title={s.totpEnable}
        action={s.next}
        close={close}
        run={async (password) => setOffer({ ...(await api.totp(password)), password })}
      />
    );
  return (
    <FormDialog title={s.totpEnable} close={close} form={form} action={s.confirm} notice={false}>
      <p>{s.totpSetUp}</p>
      <QrCode text={offer.uri} label={s.qr} />
      <div class="field">
        <span class="legend">{s.setupKey}</span>
        <Code text={offer.secret.replace(/(.{4})(?=.)/g, '$1 ')} label={s.setupKey} />
      </div>
      <p>
        <a href={offer.uri}>{s.openApp}</a>
      </p>
      <Field label={strings.signIn.code} required error={form.error ? messageOf(form.error) : undefined}>
        <TextInput
          value={code}
          change={setCode}
          inputMode="numeric"
          autoComplete="one-time-code"
          maxLength={7}
          class="code-input"
          data-autofocus
        />
      </Field>
    </FormDialog>
  );
}
