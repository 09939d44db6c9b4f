import { useState } from 'preact/hooks';
import { applications as api } from '../api/api.js';
import { messageOf } from '../api/client.js';
import type { Application } from '../api/types.js';
import { strings } from '../strings.js';
import { Button } from '../ui/button.js';
import { Code } from '../ui/copy.js';
import { Dialog } from '../ui/dialog.js';
import { Field, Select } from '../ui/field.js';
import { Notice } from '../ui/states.js';

const s = strings.applications;

/** Makes an identity secret: asks how long the old one stays valid, then shows the new one, once. */
export function useNewSecret(app: Application, put: (a: Application) => void, fail: (problem: string) => void) {
  const [making, setMaking] = useState(false);
  const [overlap, setOverlap] = useState('86400');
  const [busy, setBusy] = useState(false);
  const [secret, setSecret] = useState('');
  const make = async () => {
    if (busy) return;
    setBusy(true);
    try {
      const made = await api.newSecret(app.id, Number(overlap));
      put(made.application);
      setSecret(made.secret);
    } catch (err) {
      fail(messageOf(err));
    } finally {
      setMaking(false);
      setBusy(false);
    }
  };
  return {
    making,
    open: () => setMaking(true),
    close: () => setMaking(false),
    overlap,
    setOverlap,
    busy,
    make,
    secret,
    done: () => setSecret(''),
  };
}

type Flow = ReturnType<typeof useNewSecret>;

export function MakeSecret({ first, close, make, busy, overlap, setOverlap }: Flow & { first: boolean }) {
  return (
    <Dialog
      title={first ? s.makeSecret : s.rotateSecret}
      close={close}
      onSubmit={() => void make()}
      footer={
        <>
          <Button onClick={close}>{strings.cancel}</Button>
          <Button type="submit" kind="primary" busy={busy}>
            {s.makeAction}
          </Button>
        </>
      }
    >
      <p>{s.makeLead}</p>
      {!first && (
        <Field label={strings.tokens.overlap} hint={s.secretOverlapHint}>
          <Select
            value={overlap}
            change={setOverlap}
            options={strings.tokens.overlaps.map(([value, label]) => ({ value, label }))}
          />
        </Field>
      )}
    </Dialog>
  );
}

export function NewSecret({ secret, done }: Flow) {
  return (
    <Dialog
      title={s.newSecret}
      close={done}
      dismissible={false}
      wide
      footer={
        <Button kind="primary" data-autofocus onClick={done}>
          {strings.tokens.secretDone}
        </Button>
      }
    >
      <Notice kind="warn">{strings.tokens.secretOnce}</Notice>
      <div class="field">
        <span class="legend">{s.identitySecret}</span>
        <Code text={secret} label={s.identitySecret} />
      </div>
      <div class="field">
        <span class="legend">{s.secretUse}</span>
        <Code text={hashExample(secret)} label={s.secretUse} />
      </div>
    </Dialog>
  );
}

/** Returns a shell command that computes userHash. On a real site, the site's server computes it. */
const hashExample = (secret: string): string => `printf %s "$USER_ID" | openssl dgst -sha256 -hmac '${secret}'`;
