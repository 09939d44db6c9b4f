import type { Application } from '../api/types.js';
import { strings } from '../strings.js';
import { Button, IconButton } from '../ui/button.js';
import { Code } from '../ui/copy.js';
import { Field, TextInput } from '../ui/field.js';
import { Card } from '../ui/page.js';
import { Notice } from '../ui/states.js';
import { originOf } from './draft.js';
import type { Change, TabProps } from './tab.js';

const s = strings.applications;

type OriginsProps = TabProps & { change: Change; dirty: boolean };

/** How a site embeds the widget, and which sites may. */
export function Install({ app, ...p }: OriginsProps & { app: Application }) {
  return (
    <>
      <Card title={s.embed} lead={s.embedLead}>
        <Code text={app.embed.snippet} label={s.embed} />
        <h3>{s.media}</h3>
        <p class="muted">{s.mediaLead}</p>
        <h3>{s.csp}</h3>
        <p class="muted">{s.cspLead}</p>
        <Code text={app.embed.csp} label={s.csp} />
        <p class="muted">
          {s.appId} <code class="wrap-any">{app.id}</code>
        </p>
      </Card>
      <Origins {...p} />
    </>
  );
}

function Origins({ d, change, errors, dirty }: OriginsProps) {
  const listed = d.allowedOrigins;
  const isInvalid = (o: string) => o.trim() !== '' && originOf(o) !== o.trim();
  const originErrors = Object.entries(errors).filter(([k]) => k.startsWith('allowedOrigins'));
  const replace = (i: number, by: string) => change({ allowedOrigins: listed.map((old, j) => (j === i ? by : old)) });
  return (
    <Card title={s.allowed} lead={s.allowedLead}>
      {!listed.length && <Notice kind="info">{s.anyOriginLead}</Notice>}
      {listed.map((o, i) => (
        <div key={i} class="row-flex top-line">
          <Field
            hidden
            class="grow-1"
            label={s.origin(i + 1)}
            error={isInvalid(o) ? s.originWrong(originOf(o)) : errors[`allowedOrigins[${i}]`]}
          >
            <TextInput
              type="url"
              value={o}
              placeholder="https://www.example.com"
              change={(v) => replace(i, v)}
              onBlur={() => isInvalid(o) && originOf(o) && replace(i, originOf(o)!)}
            />
          </Field>
          <IconButton
            icon="trash"
            label={s.removeOrigin(i + 1)}
            onClick={() => change({ allowedOrigins: listed.filter((_, j) => j !== i) })}
          />
        </div>
      ))}
      {originErrors.length > 0 && <Notice kind="bad">{originErrors.map(([, m]) => m).join(' ')}</Notice>}
      <div>
        <Button small icon="plus" onClick={() => change({ allowedOrigins: [...listed, ''] })}>
          {s.addOrigin}
        </Button>
      </div>
      {dirty && <p class="faint">{s.afterSaving}</p>}
    </Card>
  );
}
