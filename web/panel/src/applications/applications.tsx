import { useState } from 'preact/hooks';
import { applications as api } from '../api/api.js';
import type { Application, RatingSum } from '../api/types.js';
import { initials } from '../lib/format.js';
import { useLoad } from '../lib/load.js';
import { navigate, useRoute } from '../lib/router.js';
import { useRule } from '../lib/sheet.js';
import { can } from '../state.js';
import { strings } from '../strings.js';
import { Button } from '../ui/button.js';
import { FormDialog } from '../ui/dialog.js';
import { Field, TextInput } from '../ui/field.js';
import { Page } from '../ui/page.js';
import { Badge, Empty, Failed, Skeleton } from '../ui/states.js';
import { useSubmit } from '../ui/submit.js';
import { shownColour } from './draft.js';
import { Average, useRatings } from './support.js';
import { Editor } from './editor.js';

const s = strings.applications;

export default function Applications() {
  const { parts } = useRoute();
  return parts[1] ? <Editor key={parts[1]} id={parts[1]} tab={parts[2] ?? 'look'} /> : <List />;
}

function List() {
  const { data, error, loading, reload } = useLoad((signal) => api.list(signal), []);
  const rated = useRatings()?.ratings ?? [];
  const [creating, setCreating] = useState(false);
  const create = can('applications.write') && (
    <Button kind="primary" icon="plus" onClick={() => setCreating(true)}>
      {s.create}
    </Button>
  );
  return (
    <Page title={s.title} lead={s.lead} actions={data?.length ? create : undefined}>
      {!data && loading && <Skeleton />}
      {!data && !!error && <Failed error={error} retry={reload} />}
      {data?.length === 0 && (
        <Empty icon="window" title={s.empty} action={create}>
          {s.emptyLead}
        </Empty>
      )}
      {!!data?.length && (
        <ul class="app-grid">
          {data.map((a) => (
            <li key={a.id}>
              <Tile app={a} ratings={rated.find((r) => r.appId === a.id)} />
            </li>
          ))}
        </ul>
      )}
      {creating && <Create close={() => setCreating(false)} />}
    </Page>
  );
}

function Tile({ app: a, ratings }: { app: Application; ratings: RatingSum | undefined }) {
  const colour = useRule({
    '--tile': shownColour(a.widgetConfigs, 'primaryBackgroundColor'),
    '--tile-ink': shownColour(a.widgetConfigs, 'primaryTextColor'),
  });
  return (
    <a class={`app-tile ${colour}`} href={`#/applications/${a.id}`}>
      <span class="app-mark" aria-hidden="true">
        {initials(a.name)}
      </span>
      <span class="grow-1">
        <b>{a.name}</b>
        <small>{s.botIs(a.botName)}</small>
        <span class="row-flex">
          <Badge>{a.allowedOrigins.length ? s.origins(a.allowedOrigins.length) : s.anyOrigin}</Badge>
          {a.verification !== 'off' && <Badge kind="good">{s.verifications[a.verification][0]}</Badge>}
          {ratings && <Average ratings={ratings} />}
        </span>
      </span>
    </a>
  );
}

function Create({ close }: { close(): void }) {
  const [name, setName] = useState('');
  const [botName, setBotName] = useState('');
  const form = useSubmit(async () => {
    const app = await api.create({
      name: name.trim(),
      botName: botName.trim(),
      widgetConfigs: {
        formInputs: ['firstName', 'email'],
        requiredFields: ['email'],
        greetingMessages: [{ content: s.defaultGreeting }],
      },
    });
    close();
    navigate(`/applications/${app.id}`);
  }, !!name.trim() && !!botName.trim());
  const { errors, tried } = form;
  return (
    <FormDialog title={s.create} close={close} form={form} action={s.createAction}>
      <Field
        label={s.name}
        hint={s.nameHint}
        required
        error={errors.name ?? (tried && !name.trim() ? strings.required : undefined)}
      >
        <TextInput value={name} change={setName} spellcheck maxLength={100} />
      </Field>
      <Field
        label={s.botName}
        hint={s.botNameHint}
        required
        error={errors.botName ?? (tried && !botName.trim() ? strings.required : undefined)}
      >
        <TextInput value={botName} change={setBotName} maxLength={100} />
      </Field>
    </FormDialog>
  );
}
