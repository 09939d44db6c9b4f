import { text } from '@parley/shared/message.js';
import { strings } from '../strings.js';
import { Field, TextInput } from '../ui/field.js';
import { Card } from '../ui/page.js';
import { Notice } from '../ui/states.js';
import { Colour } from './colour.js';
import { COLOURS, unreadable, withKey } from './draft.js';
import type { Change, ChangeConfigs, TabProps } from './tab.js';

const s = strings.applications;

/** The names, the colours and the icons of the widget. */
export function Look({ d, change, configs, errors }: TabProps & { change: Change; configs: ChangeConfigs }) {
  const c = d.widgetConfigs;
  const poor = unreadable(c);
  return (
    <>
      <Card title={s.texts}>
        <div class="form-grid">
          <Field
            label={s.name}
            hint={s.nameHint}
            error={errors.name ?? (d.name.trim() ? undefined : strings.required)}
            required
          >
            <TextInput value={d.name} spellcheck change={(name) => change({ name })} />
          </Field>
          <Field
            label={s.botName}
            hint={s.botNameHint}
            error={errors.botName ?? (d.botName.trim() ? undefined : strings.required)}
            required
          >
            <TextInput value={d.botName} change={(botName) => change({ botName })} />
          </Field>
        </div>
      </Card>
      <Card title={s.colours} lead={s.coloursLead}>
        <div class="colour-grid">
          {COLOURS.map(({ key }) => (
            <Colour key={key} name={key} configs={c} change={configs} error={errors[`widgetConfigs.${key}`]} />
          ))}
        </div>
        {poor.map(({ text: key, ratio }) => (
          <Notice key={key} kind="warn">
            {s.poorContrast(s.colourNames[key], ratio)}
          </Notice>
        ))}
      </Card>
      <Card title={s.icons} lead={s.iconsLead}>
        {(['aiIconUrl', 'widgetIconUrl', 'userIconUrl'] as const).map((key) => (
          <Field key={key} label={s.iconNames[key]} optional error={errors[`widgetConfigs.${key}`]}>
            <TextInput
              type="url"
              value={text(c[key])}
              placeholder="https://"
              change={(v) => configs(withKey(c, key, v))}
            />
          </Field>
        ))}
      </Card>
    </>
  );
}
