/** The card "Ranking by meaning": the model of the company that ranks what the words of a question find. */
import { useEffect, useState } from 'preact/hooks';
import { connections as connectionsApi, ranking as api } from '../api/api.js';
import { isStatus, messageOf } from '../api/client.js';
import type { Connection, Ranking } from '../api/types.js';
import { formatNumber } from '../lib/format.js';
import { type Loaded, useLoad } from '../lib/load.js';
import { strings } from '../strings.js';
import { Button } from '../ui/button.js';
import { Field, Select, TextInput } from '../ui/field.js';
import { Card } from '../ui/page.js';
import { Failed, Notice, Skeleton } from '../ui/states.js';
import { useSubmit } from '../ui/submit.js';
import { toast } from '../ui/toast.js';

const s = strings.ranking;

/** How often the progress is read while embeddings are being made, in milliseconds. */
const REFRESH = 3_000;

export function RankingCard() {
  const stored = useLoad((signal) => api.get(signal), []);
  const connections = useLoad((signal) => connectionsApi.list(signal), []);
  const working = !!stored.data?.connectionId && stored.data.embedded < stored.data.passages;
  useEffect(() => {
    if (!working) return;
    const timer = setInterval(stored.reload, REFRESH);
    return () => clearInterval(timer);
  }, [working]);
  return (
    <Card title={s.title} lead={s.lead}>
      {!stored.data && !stored.error && <Skeleton rows={2} />}
      {!stored.data && !!stored.error && <Failed error={stored.error} retry={stored.reload} />}
      {stored.data && (
        <Form key={stored.data.revision} stored={stored.data} connections={connections} saved={stored.set} />
      )}
      <div aria-live="polite">{stored.data && <Progress {...stored.data} />}</div>
    </Card>
  );
}

interface FormProps {
  stored: Ranking;
  connections: Loaded<Connection[]>;
  saved(change: () => Ranking): void;
}

function Form({ stored, connections, saved }: FormProps) {
  const [connectionId, setConnection] = useState(stored.connectionId ?? '');
  const [model, setModel] = useState(stored.model ?? '');
  const name = model.trim();
  const { busy, error, errors, tried, submit } = useSubmit(async () => {
    const next = await api.set(connectionId ? { connectionId, model: name } : {}, stored.revision);
    saved(() => next);
    toast(s.saved);
  }, !connectionId || !!name);
  const missing = tried && connectionId && !name ? strings.required : undefined;
  const shown = errors.connectionId ?? errors.model;
  return (
    <form class="stack tight" noValidate onSubmit={submit}>
      <Field label={s.connection} error={errors.connectionId}>
        <Select value={connectionId} change={setConnection} options={optionsOf(connections, connectionId)} />
      </Field>
      {connectionId && (
        <Field label={s.model} hint={s.modelHint} required error={errors.model ?? missing}>
          <TextInput value={model} change={setModel} maxLength={200} />
        </Field>
      )}
      {!!error && !shown && <Notice kind="bad">{isStatus(error, 412) ? s.changed : messageOf(error)}</Notice>}
      <div>
        <Button type="submit" busy={busy}>
          {s.save}
        </Button>
      </div>
    </form>
  );
}

/** Words alone, or a connection of the company. A chosen one is an option also while the list is not loaded. */
function optionsOf({ data }: Loaded<Connection[]>, chosen: string) {
  const known = (data ?? []).map((c) => ({ value: c.id, label: c.name }));
  if (chosen && !known.some((c) => c.value === chosen)) known.push({ value: chosen, label: chosen });
  return [{ value: '', label: s.wordsAlone }, ...known];
}

/** How many passages are ranked by meaning, and why no more are. */
function Progress({ connectionId, passages, embedded, failure }: Ranking) {
  if (!connectionId) return null;
  return (
    <>
      <p class="muted">{s.progress(formatNumber(embedded), formatNumber(passages))}</p>
      {failure && <Notice kind="bad">{s.failure(failure)}</Notice>}
    </>
  );
}
