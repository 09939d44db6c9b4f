import { useState } from 'preact/hooks';
import { strings } from '../strings.js';
import { Button, IconButton } from '../ui/button.js';
import { Field, Select, TextArea, TextInput } from '../ui/field.js';
import { Card } from '../ui/page.js';
import { formFields, greetings, withField, withGreetings, type FieldMode } from './draft.js';
import type { ChangeConfigs, TabProps } from './tab.js';

const s = strings.applications;
const MODES = ['hidden', 'optional', 'required'] as const;

type Props = TabProps & { configs: ChangeConfigs };

/** What a visitor fills in before the first chat, and reads at the start of each. */
export function FormTab(p: Props) {
  return (
    <>
      <Fields {...p} />
      <Greetings {...p} />
    </>
  );
}

function Fields({ d, configs, errors }: Props) {
  const c = d.widgetConfigs;
  const fields = formFields(c);
  const options = MODES.map((m) => ({ value: m, label: s.fieldModes[m] }));
  return (
    <Card title={s.form} lead={s.formLead}>
      <ul class="fields">
        {fields.map((f) => (
          <li key={f.name}>
            <Field label={s.fieldNames[f.name] ?? f.name} error={errors[`widgetConfigs.${f.name}`]}>
              <Select
                value={f.mode}
                change={(mode) => configs(withField(c, f.name, mode as FieldMode))}
                options={options}
              />
            </Field>
          </li>
        ))}
      </ul>
      <NewField
        add={(name) => {
          const shown = fields.filter((f) => f.mode !== 'hidden').map((f) => f.name);
          configs(withField({ ...c, formInputs: [...shown, name] }, name, 'optional'));
        }}
      />
    </Card>
  );
}

/** Adds a field that Parley does not know. */
function NewField({ add }: { add(name: string): void }) {
  const [name, setName] = useState('');
  const submit = () => {
    if (name.trim()) add(name.trim());
    setName('');
  };
  const onKeyDown = (e: KeyboardEvent) => {
    if (e.key !== 'Enter') return;
    e.preventDefault();
    submit();
  };
  return (
    <div class="row-flex end-line">
      <Field label={s.otherField} hint={s.otherFieldHint} class="grow-1">
        <TextInput value={name} change={setName} maxLength={64} onKeyDown={onKeyDown} />
      </Field>
      <Button icon="plus" disabled={!name.trim()} onClick={submit}>
        {strings.add}
      </Button>
    </div>
  );
}

function Greetings({ d, configs, errors }: Props) {
  const c = d.widgetConfigs;
  const contents = greetings(c);
  const replace = (i: number, by: string) => contents.map((old, j) => (j === i ? by : old));
  const without = (i: number) => contents.filter((_, j) => j !== i);
  return (
    <Card title={s.greetings} lead={s.greetingsLead}>
      {contents.map((g, i) => (
        <div key={i} class="row-flex top-line">
          <Field
            hidden
            class="grow-1"
            label={s.greeting(i + 1)}
            error={errors[`widgetConfigs.greetingMessages[${i}].content`]}
          >
            <TextArea
              rows={2}
              value={g}
              spellcheck
              placeholder={s.greeting(i + 1)}
              change={(v) => configs(withGreetings(c, replace(i, v)))}
            />
          </Field>
          <IconButton
            icon="trash"
            label={s.removeGreeting(i + 1)}
            onClick={() => configs(withGreetings(c, without(i)))}
          />
        </div>
      ))}
      <div>
        <Button small icon="plus" onClick={() => configs(withGreetings(c, [...contents, '']))}>
          {s.addGreeting}
        </Button>
      </div>
    </Card>
  );
}
