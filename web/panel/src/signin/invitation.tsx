import { useState } from 'preact/hooks';
import { session as api } from '../api/api.js';
import { isStatus, messageOf } from '../api/client.js';
import { useLoad } from '../lib/load.js';
import { navigate } from '../lib/router.js';
import { useStore } from '../lib/store.js';
import { app, signedIn, signedOut } from '../state.js';
import { strings } from '../strings.js';
import { Button } from '../ui/button.js';
import { Field, PasswordInput, TextInput } from '../ui/field.js';
import { Logo } from '../ui/logo.js';
import { useTitle } from '../ui/page.js';
import { Empty, Failed, Notice, Skeleton } from '../ui/states.js';
import { useSubmit } from '../ui/submit.js';

const s = strings.invitation;

export const MIN_PASSWORD = 12;

export function AcceptInvitation({ token }: { token: string }) {
  const { data, error, reload } = useLoad(() => api.checkInvitation(token), [token]);
  const [name, setName] = useState<string>();
  const [password, setPassword] = useState('');
  const { meta } = useStore(app);
  const withOIDC = useSubmit(async () => location.assign((await api.acceptInvitationWithOIDC(token)).location), true);
  useTitle(s.title);
  const shownName = name ?? data?.name ?? '';
  const {
    busy,
    error: problem,
    errors,
    tried,
    submit,
  } = useSubmit(
    async () => {
      const session = await api.acceptInvitation({ token, name: shownName.trim(), password });
      signedOut();
      navigate('/', { replace: true });
      await signedIn(session);
    },
    !!shownName.trim() && password.length >= MIN_PASSWORD,
  );
  return (
    <main class="gate">
      <div class="gate-card">
        <Logo />
        {!data && !error && <Skeleton rows={4} />}
        {isStatus(error, 404) ? (
          <Empty icon="mail" title={s.gone}>
            {s.goneLead}
          </Empty>
        ) : error ? (
          <Failed error={error} retry={reload} />
        ) : null}
        {data && (
          <>
            <h1>{s.heading(data.companyName)}</h1>
            <p class="lead">{s.lead(data.email, strings.roles[data.role])}</p>
            {!!problem && <Notice kind="bad">{messageOf(problem)}</Notice>}
            <form noValidate onSubmit={submit}>
              <input type="hidden" name="email" autoComplete="username" value={data.email} />
              <Field
                label={s.name}
                required
                error={errors.name ?? (tried && !shownName.trim() ? strings.required : undefined)}
              >
                <TextInput name="name" autoComplete="name" value={shownName} change={setName} />
              </Field>
              <Field
                label={s.password}
                hint={s.passwordHint(MIN_PASSWORD)}
                required
                error={
                  errors.password ??
                  (tried && password.length < MIN_PASSWORD ? s.passwordShort(MIN_PASSWORD) : undefined)
                }
              >
                <PasswordInput name="password" autoComplete="new-password" value={password} change={setPassword} />
              </Field>
              <Button type="submit" kind="primary" busy={busy}>
                {s.submit}
              </Button>
            </form>
            {meta?.oidc && (
              <>
                <p class="or">
                  <span>{s.or}</span>
                </p>
                {!!withOIDC.error && <Notice kind="bad">{messageOf(withOIDC.error)}</Notice>}
                <Button icon="shield" busy={withOIDC.busy} onClick={() => withOIDC.submit()}>
                  {s.oidc(meta.oidc.name)}
                </Button>
              </>
            )}
          </>
        )}
      </div>
    </main>
  );
}
