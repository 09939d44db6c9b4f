import { useEffect, useRef, useState } from 'preact/hooks';
import { session as api } from '../api/api.js';
import { isCode, messageOf } from '../api/client.js';
import { useStore } from '../lib/store.js';
import { app, signedIn } from '../state.js';
import { strings } from '../strings.js';
import { Button, LinkButton } from '../ui/button.js';
import { Field, PasswordInput, TextInput } from '../ui/field.js';
import { Logo } from '../ui/logo.js';
import { useTitle } from '../ui/page.js';
import { Notice } from '../ui/states.js';

const s = strings.signIn;

export function SignIn({ expired }: { expired: boolean }) {
  const { meta } = useStore(app);
  const [email, setEmail] = useState('');
  const [password, setPassword] = useState('');
  const [code, setCode] = useState('');
  const [asksCode, setAsksCode] = useState(false);
  const [busy, setBusy] = useState(false);
  const [tried, setTried] = useState(false);
  const [problem, setProblem] = useState(
    new URLSearchParams(location.search).get('error') === 'oidc' ? s.oidcFailed : '',
  );
  const emailInput = useRef<HTMLInputElement>(null);
  const passwordInput = useRef<HTMLInputElement>(null);
  const codeInput = useRef<HTMLInputElement>(null);
  useTitle(s.title);
  useEffect(() => emailInput.current?.focus(), []);
  useEffect(() => {
    if (asksCode) codeInput.current?.focus();
  }, [asksCode]);

  const submit = async (e: Event) => {
    e.preventDefault();
    if (busy) return;
    setTried(true);
    if (!email.trim()) return emailInput.current?.focus();
    if (!password) return passwordInput.current?.focus();
    if (asksCode && !code.trim()) return codeInput.current?.focus();
    setBusy(true);
    setProblem('');
    try {
      const session = await api.signIn({
        email: email.trim(),
        password,
        ...(asksCode && { code: code.replace(/\s/g, '') }),
      });
      if (location.search) history.replaceState(null, '', location.pathname + location.hash);
      await signedIn(session);
    } catch (err) {
      setBusy(false);
      if (isCode(err, 'TOTP_REQUIRED')) {
        setTried(false);
        return setAsksCode(true);
      }
      setProblem(messageOf(err));
      if (isCode(err, 'INVALID_CODE')) {
        setCode('');
        codeInput.current?.focus();
      } else if (isCode(err, 'INVALID_CREDENTIALS')) passwordInput.current?.focus();
    }
  };

  return (
    <main class="gate">
      <div class="gate-card">
        <Logo />
        <h1>{s.heading}</h1>
        <p class="lead">{s.lead}</p>
        {expired && !problem && <Notice kind="info">{s.expired}</Notice>}
        {problem && <Notice kind="bad">{problem}</Notice>}
        <form noValidate onSubmit={(e) => void submit(e)}>
          {!asksCode && (
            <>
              <Field label={s.email} required error={tried && !email.trim() ? strings.required : undefined}>
                <TextInput
                  inputRef={emailInput}
                  type="email"
                  name="email"
                  autoComplete="username"
                  value={email}
                  change={setEmail}
                />
              </Field>
              <Field label={s.password} required error={tried && !password ? strings.required : undefined}>
                <PasswordInput
                  inputRef={passwordInput}
                  name="password"
                  autoComplete="current-password"
                  value={password}
                  change={setPassword}
                />
              </Field>
            </>
          )}
          {asksCode && (
            <Field
              label={s.code}
              hint={s.codeHint}
              required
              error={tried && !code.trim() ? strings.required : undefined}
            >
              <TextInput
                inputRef={codeInput}
                name="code"
                autoComplete="one-time-code"
                maxLength={24}
                class="code-input"
                value={code}
                change={setCode}
              />
            </Field>
          )}
          <Button type="submit" kind="primary" busy={busy}>
            {busy ? s.busy : s.submit}
          </Button>
          {asksCode && (
            <Button
              kind="quiet"
              onClick={() => {
                setAsksCode(false);
                setProblem('');
                setCode('');
              }}
            >
              {s.otherAccount}
            </Button>
          )}
        </form>
        {meta?.oidc && !asksCode && (
          <>
            <p class="or">
              <span>{s.or}</span>
            </p>
            <LinkButton href="/api/oidc/start" icon="shield">
              {s.oidc(meta.oidc.name)}
            </LinkButton>
          </>
        )}
      </div>
      <p class="gate-foot">{s.foot}</p>
    </main>
  );
}
