import { useState } from 'preact/hooks';
import { webhooks as api } from '../api/api.js';
import type { NewWebhookEndpoint, WebhookEndpoint, WebhookType } from '../api/types.js';
import { strings } from '../strings.js';
import { FormDialog } from '../ui/dialog.js';
import { Checkbox, Field, Segmented, TextArea, TextInput } from '../ui/field.js';
import { useSubmit } from '../ui/submit.js';
import { parseHeaders } from './headers.js';

const s = strings.webhooks;

/** Creates or edits an endpoint. Header values are never shown; an empty field keeps the current headers. */
export function Editor({
  endpoint,
  types,
  close,
  created,
  saved,
}: {
  endpoint?: WebhookEndpoint;
  types: WebhookType[];
  close(): void;
  created(m: NewWebhookEndpoint): void;
  saved(e: WebhookEndpoint): void;
}) {
  const [url, setUrl] = useState(endpoint?.url ?? '');
  const [description, setDescription] = useState(endpoint?.description ?? '');
  const [some, setSome] = useState(!!endpoint?.events.length);
  const [events, setEvents] = useState((endpoint?.events ?? []) as WebhookType[]);
  const [headers, setHeaders] = useState('');
  const [clear, setClear] = useState(false);
  const [ordered, setOrdered] = useState(!!endpoint?.ordered);
  const [signatures, setSignatures] = useState<WebhookEndpoint['signatures']>(['v1']);
  const toggle = <T,>(list: T[], value: T) =>
    list.includes(value) ? list.filter((x) => x !== value) : [...list, value];
  const parsed = parseHeaders(headers);
  const invalid = {
    url: !url.trim(),
    events: some && !events.length,
    headers: !parsed,
    signatures: !endpoint && !signatures.length,
  };
  const form = useSubmit(async () => {
    const body = { url: url.trim(), description: description.trim(), events: some ? events : [], ordered };
    const given = clear || Object.keys(parsed!).length > 0;
    if (endpoint) saved(await api.update(endpoint.id, { ...body, ...(given && { headers: clear ? {} : parsed! }) }));
    else created(await api.create({ ...body, headers: parsed!, signatures }));
  }, !Object.values(invalid).some(Boolean));
  const { error, errors, tried } = form;
  const fields = ['url', 'description', 'events', 'headers'];
  const hasOtherError =
    !!error && (!Object.keys(errors).length || Object.keys(errors).some((f) => !fields.includes(f)));
  return (
    <FormDialog
      title={endpoint ? s.editTitle : s.create}
      close={close}
      form={form}
      action={endpoint ? strings.save : s.createAction}
      notice={hasOtherError}
    >
      <Field
        label={s.url}
        hint={s.urlHint}
        required
        error={errors.url ?? (tried && invalid.url ? strings.required : undefined)}
      >
        <TextInput type="url" value={url} change={setUrl} placeholder="https://crm.example/parley" />
      </Field>
      <Field label={s.description} optional error={errors.description}>
        <TextInput value={description} change={setDescription} maxLength={200} />
      </Field>
      <div class={(tried && invalid.events) || errors.events ? 'field bad' : 'field'}>
        <span class="legend">{s.events}</span>
        <Segmented
          label={s.events}
          value={some ? 'some' : 'all'}
          change={(v) => setSome(v === 'some')}
          options={[
            { value: 'all', label: s.allEvents },
            { value: 'some', label: s.someEvents },
          ]}
        />
        {some &&
          types.map((t) => (
            <Checkbox key={t} label={t} checked={events.includes(t)} change={() => setEvents(toggle(events, t))} />
          ))}
        {(errors.events || (tried && invalid.events)) && <p class="error">{errors.events ?? s.chooseEvents}</p>}
      </div>
      <Field
        label={s.headers}
        optional
        hint={endpoint?.headers.length ? s.headersSet(endpoint.headers.join(', ')) : s.headersHint}
        error={errors.headers ?? (tried && invalid.headers ? s.headersWrong : undefined)}
      >
        <TextArea value={headers} change={setHeaders} disabled={clear} placeholder="X-Api-Key: …" />
      </Field>
      {!!endpoint?.headers.length && <Checkbox label={s.clearHeaders} checked={clear} change={setClear} />}
      <Checkbox label={s.orderedLabel} hint={s.orderedHint} checked={ordered} change={setOrdered} />
      {!endpoint && (
        <div class={tried && invalid.signatures ? 'field bad' : 'field'}>
          <span class="legend">{s.signatures}</span>
          <Checkbox
            label={s.v1}
            hint={s.v1Hint}
            checked={signatures.includes('v1')}
            change={() => setSignatures(toggle(signatures, 'v1'))}
          />
          <Checkbox
            label={s.v1a}
            hint={s.v1aHint}
            checked={signatures.includes('v1a')}
            change={() => setSignatures(toggle(signatures, 'v1a'))}
          />
          {tried && invalid.signatures && <p class="error">{s.chooseSignature}</p>}
        </div>
      )}
    </FormDialog>
  );
}
