import { useId, useState } from 'preact/hooks';
import { applications as api } from '../api/api.js';
import { isCode, messageOf } from '../api/client.js';
import type { Application, Verification } from '../api/types.js';
import { formatFull } from '../lib/format.js';
import { strings } from '../strings.js';
import { Button } from '../ui/button.js';
import { Field, TextInput } from '../ui/field.js';
import { Card } from '../ui/page.js';
import { Badge, Notice } from '../ui/states.js';
import { toast } from '../ui/toast.js';
import { MakeSecret, NewSecret, useNewSecret } from './secret.js';
import type { Change, TabProps } from './tab.js';

const s = strings.applications;
const DAY = 86_400;

interface Props {
  app: Application;
  /** Takes the application as it is saved: verification and secrets are not part of the draft. */
  put(a: Application): void;
  writable: boolean;
}

/** How visitors prove their identity, and how long their files are kept. */
export function Security({ app, d, change, errors, put, writable }: TabProps & { change: Change } & Props) {
  const [problem, setProblem] = useState('');
  const fresh = useNewSecret(app, put, setProblem);
  return (
    <>
      <Card title={s.verification} lead={s.verificationLead}>
        <VerificationChoice app={app} put={put} writable={writable} setProblem={setProblem} />
        {problem && <Notice kind="bad">{problem}</Notice>}
        <Secrets app={app} writable={writable} make={fresh.open} />
      </Card>
      <Card title={s.files} lead={s.filesLead}>
        <Retention
          seconds={d.fileRetentionSeconds}
          error={errors.fileRetentionSeconds}
          change={(fileRetentionSeconds) => change({ fileRetentionSeconds })}
        />
      </Card>
      {fresh.making && <MakeSecret first={!app.secrets.length} {...fresh} />}
      {fresh.secret && <NewSecret {...fresh} />}
    </>
  );
}

/** Saves the choice at once. */
function VerificationChoice({ app, put, writable, setProblem }: Props & { setProblem(problem: string): void }) {
  const [mode, setMode] = useState<Verification>(app.verification);
  const [busy, setBusy] = useState(false);
  const id = useId();
  const choose = async (v: Verification) => {
    setMode(v);
    setBusy(true);
    setProblem('');
    try {
      put(await api.verification(app.id, v));
      toast(s.verificationSet(s.verifications[v][0]));
    } catch (err) {
      setMode(app.verification);
      setProblem(isCode(err, 'NO_IDENTITY_SECRET') ? s.needsSecret : messageOf(err));
    } finally {
      setBusy(false);
    }
  };
  return (
    <div class="radios" role="radiogroup" aria-label={s.verification}>
      {(['off', 'session', 'required'] as const).map((v) => (
        <div key={v} class={mode === v ? 'radio on' : 'radio'}>
          <input
            type="radio"
            name={id}
            id={`${id}-${v}`}
            checked={mode === v}
            disabled={busy || !writable}
            aria-describedby={`${id}-${v}-hint`}
            onChange={() => void choose(v)}
          />
          <label for={`${id}-${v}`}>{s.verifications[v][0]}</label>
          <p class="hint" id={`${id}-${v}-hint`}>
            {s.verifications[v][1]}
          </p>
        </div>
      ))}
    </div>
  );
}

function Secrets({ app, writable, make }: Pick<Props, 'app' | 'writable'> & { make(): void }) {
  const { secrets } = app;
  return (
    <>
      <h3>{s.secrets}</h3>
      <p class="muted">{s.secretsLead}</p>
      {secrets.length > 0 && (
        <ul class="plain-list">
          {secrets.map((x) => (
            <li key={x.createdAt}>
              <code>••••••••</code>
              <span>{s.secretMade(formatFull(x.createdAt))}</span>
              {x.expiresAt ? (
                <Badge kind="warn">{s.secretEnds(formatFull(x.expiresAt))}</Badge>
              ) : (
                <Badge kind="good">{s.current}</Badge>
              )}
            </li>
          ))}
        </ul>
      )}
      {!secrets.length && <p class="faint">{s.noSecret}</p>}
      {writable && (
        <div>
          <Button icon={secrets.length ? 'refresh' : 'plus'} onClick={make}>
            {secrets.length ? s.rotateSecret : s.makeSecret}
          </Button>
        </div>
      )}
    </>
  );
}

interface RetentionProps {
  seconds: number | undefined;
  error: string | undefined;
  change(seconds: number): void;
}

/** How long files are kept, in days. */
function Retention({ seconds, error, change }: RetentionProps) {
  const days = seconds ? String(Math.round((seconds / DAY) * 100) / 100) : '';
  return (
    <Field label={s.retention} hint={s.retentionHint} error={error}>
      <TextInput
        type="number"
        min={0}
        step="any"
        value={days}
        placeholder={s.asService}
        class="short"
        change={(v) => change(Math.max(0, Math.round(Number(v) * DAY) || 0))}
      />
    </Field>
  );
}
