/** The connections of a company to language models and to servers of tools: the list in the tab "Bot", and the dialogs that change it. */
import { useState } from 'preact/hooks';
import { connections as api } from '../api/api.js';
import type { Connection } from '../api/types.js';
import type { Loaded } from '../lib/load.js';
import { strings } from '../strings.js';
import { IconButton } from '../ui/button.js';
import { Confirm, FormDialog } from '../ui/dialog.js';
import { Checkbox, Field, type Option, TextInput } from '../ui/field.js';
import { Card } from '../ui/page.js';
import { Badge } from '../ui/states.js';
import { useSubmit } from '../ui/submit.js';
import { toast } from '../ui/toast.js';
import { connectionOf } from './botdraft.js';

const s = strings.bot.connections;

/** The connections of the company. A chosen one that is not among them keeps an option of its own. */
export function connectionOptions({ data, error }: Loaded<Connection[]>, chosen: string): Option[] {
  const known = data ?? [];
  const options = known.map((c) => ({ value: c.id, label: c.name }));
  if (chosen && !known.some((c) => c.id === chosen)) {
    const label = data ? strings.bot.goneConnection : error ? chosen : strings.loading;
    options.push({ value: chosen, label });
  }
  return [
    { value: '', label: data?.length === 0 ? strings.bot.noConnection : strings.bot.chooseConnection },
    ...options,
  ];
}

type Action = { what: 'edit' | 'remove'; connection: Connection };

/** Lists the connections, each with the actions to edit and to delete it. */
export function Connections({
  all,
  saved,
  removed,
}: {
  all: Connection[];
  saved(c: Connection): void;
  removed(id: string): void;
}) {
  const [action, setAction] = useState<Action>();
  const close = () => setAction(undefined);
  return (
    <Card title={s.title} lead={s.lead}>
      <ul class="plain-list" aria-label={s.title}>
        {all.map((c) => (
          <li key={c.id}>
            <span class="grow-1">
              <b>{c.name}</b>
              <span class="sub wrap-any">{c.baseUrl}</span>
            </span>
            <Badge>{c.hasApiKey ? s.hasKey : s.noKey}</Badge>
            <IconButton
              icon="edit"
              label={s.editOne(c.name)}
              onClick={() => setAction({ what: 'edit', connection: c })}
            />
            <IconButton
              icon="trash"
              label={s.removeOne(c.name)}
              onClick={() => setAction({ what: 'remove', connection: c })}
            />
          </li>
        ))}
      </ul>
      {action?.what === 'edit' && (
        <ConnectionDialog
          connection={action.connection}
          close={close}
          saved={(c) => {
            saved(c);
            toast(s.saved);
          }}
        />
      )}
      {action?.what === 'remove' && (
        <Confirm
          title={s.removeTitle}
          action={s.remove}
          close={close}
          confirm={async () => {
            await api.remove(action.connection.id);
            removed(action.connection.id);
            toast(s.removed);
          }}
        >
          <p class="wrap-any">{s.removeLead(action.connection.name)}</p>
        </Confirm>
      )}
    </Card>
  );
}

/** Adds or edits a connection. The key is never shown; an empty field keeps the current one. */
export function ConnectionDialog({
  connection: c,
  close,
  saved,
}: {
  connection?: Connection;
  close(): void;
  saved(c: Connection): void;
}) {
  const [name, setName] = useState(c?.name ?? '');
  const [baseUrl, setBaseUrl] = useState(c?.baseUrl ?? '');
  const [apiKey, setApiKey] = useState('');
  const [removeKey, setRemoveKey] = useState(false);
  const complete = !!name.trim() && !!baseUrl.trim();
  const form = useSubmit(async () => {
    const body = connectionOf({ name, baseUrl, apiKey, removeKey });
    saved(c ? await api.update(c.id, body) : await api.create(body));
    close();
  }, complete);
  const { errors, tried } = form;
  const missing = (value: string) => (tried && !value.trim() ? strings.required : undefined);
  return (
    <FormDialog title={c ? s.editTitle : s.create} close={close} form={form} action={c ? strings.save : s.createAction}>
      <Field label={s.name} hint={s.nameHint} required error={errors.name ?? missing(name)}>
        <TextInput value={name} change={setName} maxLength={100} />
      </Field>
      <Field label={s.baseUrl} hint={s.baseUrlHint} required error={errors.baseUrl ?? missing(baseUrl)}>
        <TextInput type="url" value={baseUrl} change={setBaseUrl} placeholder="https://models.example.com/v1" />
      </Field>
      <Field label={s.apiKey} hint={c?.hasApiKey ? s.apiKeySet : s.apiKeyHint} optional error={errors.apiKey}>
        <TextInput
          type="password"
          autoComplete="new-password"
          value={apiKey}
          change={setApiKey}
          disabled={removeKey}
          maxLength={4096}
        />
      </Field>
      {c?.hasApiKey && <Checkbox label={s.removeKey} checked={removeKey} change={setRemoveKey} />}
    </FormDialog>
  );
}
