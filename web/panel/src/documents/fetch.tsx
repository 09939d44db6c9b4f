/** Documents whose text is fetched from their address: the choice in the form, and the state of the fetches. */
import { useEffect, useState } from 'preact/hooks';
import { documents as api } from '../api/api.js';
import { messageOf } from '../api/client.js';
import type { DocumentFetch } from '../api/types.js';
import { strings } from '../strings.js';
import { Button } from '../ui/button.js';
import { Field, Radios, Select, TextArea } from '../ui/field.js';
import { Card } from '../ui/page.js';
import { Notice } from '../ui/states.js';
import { toast } from '../ui/toast.js';
import { type DocumentForm, fetchText, isFirst, REFRESH, REFRESHES } from './document.js';

const s = strings.documents;

interface PartProps {
  form: DocumentForm;
  change(c: Partial<DocumentForm>): void;
}

/** Chooses between a text that is given and one that is fetched. */
export function SourceChoice({ form, change }: PartProps) {
  return (
    <Radios
      label={s.source}
      value={form.refreshHours ? 'address' : 'hand'}
      options={[
        { value: 'hand', ...s.sources.hand },
        { value: 'address', ...s.sources.address },
      ]}
      change={(source) => change({ refreshHours: source === 'address' ? REFRESH : 0 })}
    />
  );
}

/** Chooses the schedule, and shows the text that the document has. */
export function Refresh({ form, change, error }: PartProps & { error: string | undefined }) {
  const hours = REFRESHES.includes(form.refreshHours) ? REFRESHES : [form.refreshHours, ...REFRESHES];
  return (
    <>
      <Field label={s.refresh} error={error}>
        <Select
          class="narrow"
          value={String(form.refreshHours)}
          change={(value) => change({ refreshHours: Number(value) })}
          options={hours.map((n) => ({ value: String(n), label: s.refreshes[n] ?? s.refreshOther(n) }))}
        />
      </Field>
      {form.text && (
        <Field label={s.fetchedText}>
          <TextArea rows={12} readOnly value={form.text} change={() => undefined} />
        </Field>
      )}
    </>
  );
}

/** The state of the fetches in a list. */
export function FetchState({ fetch }: { fetch: DocumentFetch }) {
  return <div class={fetch.failure ? 'sub error' : 'sub'}>{fetchText(fetch)[0]}</div>;
}

/** How often, and how many times, a page asks what came of a fetch. */
const ASK_EVERY = 2_000;
const ASKS = 30;

/** The state of the fetches on the page of a document. It asks again until a fetch that is due has ended. */
export function Fetches({ id, fetch, reload }: { id: string; fetch: DocumentFetch; reload(): void }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const [current, setCurrent] = useState(fetch);
  const [asks, setAsks] = useState(0);
  const outcome = (f: DocumentFetch) => `${f.fetchedAt} ${f.failure?.at}`;
  useEffect(() => setCurrent(fetch), [fetch]);
  const isDue = new Date(current.nextAt).getTime() <= Date.now();
  const isExpected = isDue || isFirst(current) || asks > 0;
  useEffect(() => {
    if (!isExpected || asks >= ASKS) return;
    const timer = setTimeout(async () => {
      try {
        const d = await api.get(id);
        if (d.fetch && outcome(d.fetch) === outcome(fetch)) return setAsks((n) => n + 1);
      } catch {
        return setAsks((n) => n + 1);
      }
      setAsks(0);
      reload();
    }, ASK_EVERY);
    return () => clearTimeout(timer);
  }, [isExpected, asks]);
  const now = async () => {
    setBusy(true);
    setError(undefined);
    try {
      const d = await api.fetch(id);
      if (d.fetch) setCurrent(d.fetch);
      setAsks(1);
      toast(s.fetchStarted);
    } catch (e) {
      setError(e);
    }
    setBusy(false);
  };
  const said = fetchText(current);
  const times = current.failure ? said.slice(1) : said;
  return (
    <Card title={s.fetchTitle}>
      {current.failure && (
        <Notice kind="bad">
          {said[0]} {s.fetchKept}
        </Notice>
      )}
      <p aria-live="polite">{times.join(' ')}</p>
      {!!error && <Notice kind="bad">{messageOf(error)}</Notice>}
      <div>
        <Button icon="refresh" busy={busy} onClick={now}>
          {s.fetchNow}
        </Button>
      </div>
    </Card>
  );
}
