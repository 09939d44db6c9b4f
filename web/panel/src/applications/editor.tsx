import { useEffect, useId, useState } from 'preact/hooks';
import { parseHex, toHex } from '@parley/shared/colour.js';
import { text, type Data } from '@parley/shared/message.js';
import { applications as api } from '../api/api.js';
import { fieldErrors, isCode, isStatus, messageOf } from '../api/client.js';
import type { Application, ApplicationDraft, Verification } from '../api/types.js';
import { formatFull } from '../lib/format.js';
import { useLoad } from '../lib/load.js';
import { setGuard } from '../lib/router.js';
import { can } from '../state.js';
import { strings } from '../strings.js';
import { Button, IconButton } from '../ui/button.js';
import { Code } from '../ui/copy.js';
import { Dialog } from '../ui/dialog.js';
import { Field, Radios, Select, TextArea, TextInput } from '../ui/field.js';
import { Card, Page, TabLinks } from '../ui/page.js';
import { Badge, Empty, Failed, Notice, Skeleton } from '../ui/states.js';
import { toast } from '../ui/toast.js';
import { BotTab } from './bot.js';
import {
  cleaned,
  COLOURS,
  draftOf,
  formFields,
  greetings,
  originOf,
  same,
  shownColour,
  unreadable,
  withField,
  withGreetings,
  withKey,
  type ColourKey,
  type FieldMode,
} from './draft.js';
import { Preview } from './preview.js';
import { SupportTab } from './support.js';

const s = strings.applications;
const DAY = 86_400;
const VERIFICATIONS: Verification[] = ['off', 'session', 'required'];

export function Editor({ id, tab }: { id: string; tab: string }) {
  const { data, error, reload, set } = useLoad((signal) => api.get(id, signal), [id]);
  const [draft, setDraft] = useState<ApplicationDraft>();
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>();
  const [botDirty, setBotDirty] = useState(false);
  const writable = can('applications.write');
  const d = draft ?? (data && draftOf(data));
  const dirty = !!draft && !!data && !same(cleaned(draft), cleaned(draftOf(data)));
  useEffect(() => {
    // The tabs share the draft of the application. The draft of the bot is lost when its tab closes.
    const keepsChanges = (path: string) => !botDirty && path.startsWith(`/applications/${id}`);
    setGuard(dirty || botDirty ? (path) => keepsChanges(path) || window.confirm(s.leave) : undefined);
    return () => setGuard(undefined);
  }, [dirty, botDirty]);
  const change = (c: Partial<ApplicationDraft>) => d && writable && setDraft({ ...d, ...c });
  const configs = (c: Data) => change({ widgetConfigs: c });
  const errors = fieldErrors(problem);
  const save = async () => {
    if (!draft || !data || busy) return;
    setBusy(true);
    setProblem(undefined);
    try {
      const saved = await api.update(id, cleaned(draft), data.version);
      set(() => saved);
      setDraft(undefined);
      toast(s.saved);
    } catch (err) {
      setProblem(err);
    } finally {
      setBusy(false);
    }
  };
  if (!data || !d) {
    return (
      <Page title={s.one} back={{ href: '#/applications', label: s.title }}>
        {error ? (
          isStatus(error, 404) ? (
            <Empty icon="search" title={strings.notFound}>
              {s.goneLead}
            </Empty>
          ) : (
            <Failed error={error} retry={reload} />
          )
        ) : (
          <Skeleton />
        )}
      </Page>
    );
  }
  const tabs = (['look', 'form', 'bot', 'support', 'install', 'security'] as const).filter(
    (t) => t !== 'bot' || writable, // the API shows a bot only to those who may change it
  );
  const at = tabs.find((t) => t === tab) ?? 'look';
  const previewed = at === 'look' || at === 'form';
  return (
    <Page wide={previewed} title={data.name} back={{ href: '#/applications', label: s.title }}>
      <TabLinks
        label={s.one}
        tabs={tabs.map((t) => ({ href: `#/applications/${id}/${t}`, label: s.tabs[t], current: t === at }))}
      />
      <div class={previewed ? 'editor' : 'stack'}>
        <fieldset class="stack" disabled={!writable}>
          <legend class="sr">{s.tabs[at]}</legend>
          {!writable && <Notice>{s.readOnly}</Notice>}
          {at === 'bot' && <BotTab app={data} dirtyChanged={setBotDirty} />}
          {at === 'support' && (
            <SupportTab key={data.version} app={data} writable={writable} put={(a) => set(() => a)} />
          )}
          {at === 'look' && <Look d={d} change={change} configs={configs} errors={errors} />}
          {at === 'form' && <FormTab d={d} configs={configs} errors={errors} />}
          {at === 'install' && <Install app={data} d={d} change={change} errors={errors} dirty={dirty} />}
          {at === 'security' && (
            <Security app={data} d={d} change={change} errors={errors} put={(a) => set(() => a)} writable={writable} />
          )}
          {!!problem && (
            <Notice
              kind="bad"
              action={
                isStatus(problem, 412) && (
                  <Button
                    small
                    onClick={() => {
                      setDraft(undefined);
                      setProblem(undefined);
                      reload();
                    }}
                  >
                    {s.loadNew}
                  </Button>
                )
              }
            >
              {isStatus(problem, 412) ? s.changedMeanwhile : messageOf(problem)}
            </Notice>
          )}
          {dirty && (
            <div class="save-bar" role="region" aria-label={s.unsaved}>
              <p>{s.unsaved}</p>
              <Button
                onClick={() => {
                  setDraft(undefined);
                  setProblem(undefined);
                }}
              >
                {s.discard}
              </Button>
              <Button kind="primary" busy={busy} onClick={() => void save()}>
                {strings.save}
              </Button>
            </div>
          )}
        </fieldset>
        {previewed && <Preview draft={d} stage={at === 'form' ? 'form' : 'chat'} />}
      </div>
    </Page>
  );
}

interface PartProps {
  d: ApplicationDraft;
  errors: Record<string, string>;
}
interface Changes {
  change(c: Partial<ApplicationDraft>): void;
  configs(c: Data): void;
}

function Look({ d, change, configs, errors }: PartProps & Changes) {
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

function Colour({
  name,
  configs,
  change,
  error,
}: {
  name: ColourKey;
  configs: Data;
  change(c: Data): void;
  error: string | undefined;
}) {
  const id = useId();
  const own = text(configs[name]);
  const shown = toHex(parseHex(shownColour(configs, name))!);
  const problem = own && !parseHex(own) ? s.colourWrong : error;
  return (
    <div class="colour">
      <label for={id}>{s.colourNames[name]}</label>
      <div class="colour-line">
        <input
          type="color"
          aria-label={s.pick(s.colourNames[name])}
          value={shown}
          onInput={(e) => change(withKey(configs, name, e.currentTarget.value))}
        />
        <input
          id={id}
          class="input mono"
          spellcheck={false}
          autoComplete="off"
          value={own}
          placeholder={shown}
          aria-invalid={problem ? true : undefined}
          aria-describedby={problem ? `${id}-error` : undefined}
          onInput={(e) => change(withKey(configs, name, e.currentTarget.value))}
        />
        {own && (
          <IconButton
            small
            icon="close"
            label={s.resetColour(s.colourNames[name])}
            onClick={() => change(withKey(configs, name, ''))}
          />
        )}
      </div>
      {problem && (
        <p class="error" id={`${id}-error`}>
          {problem}
        </p>
      )}
    </div>
  );
}

function FormTab({ d, configs, errors }: PartProps & Pick<Changes, 'configs'>) {
  const c = d.widgetConfigs;
  const contents = greetings(c);
  const [other, setOther] = useState('');
  const add = () => {
    if (other.trim())
      configs(
        withField(
          {
            ...c,
            formInputs: [
              ...formFields(c)
                .filter((f) => f.mode !== 'hidden')
                .map((f) => f.name),
              other.trim(),
            ],
          },
          other.trim(),
          'optional',
        ),
      );
    setOther('');
  };
  return (
    <>
      <Card title={s.form} lead={s.formLead}>
        <ul class="fields">
          {formFields(c).map((f) => (
            <li key={f.name}>
              <Field label={s.fieldNames[f.name] ?? f.name} error={errors[`widgetConfigs.${f.name}`]}>
                <Select
                  value={f.mode}
                  change={(mode) => configs(withField(c, f.name, mode as FieldMode))}
                  options={(['hidden', 'optional', 'required'] as const).map((m) => ({
                    value: m,
                    label: s.fieldModes[m],
                  }))}
                />
              </Field>
            </li>
          ))}
        </ul>
        <div class="row-flex end-line">
          <Field label={s.otherField} hint={s.otherFieldHint} class="grow-1">
            <TextInput
              value={other}
              change={setOther}
              maxLength={64}
              onKeyDown={(e) => {
                if (e.key === 'Enter') {
                  e.preventDefault();
                  add();
                }
              }}
            />
          </Field>
          <Button icon="plus" disabled={!other.trim()} onClick={add}>
            {strings.add}
          </Button>
        </div>
      </Card>
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
                change={(v) =>
                  configs(
                    withGreetings(
                      c,
                      contents.map((old, j) => (j === i ? v : old)),
                    ),
                  )
                }
              />
            </Field>
            <IconButton
              icon="trash"
              label={s.removeGreeting(i + 1)}
              onClick={() =>
                configs(
                  withGreetings(
                    c,
                    contents.filter((_, j) => j !== i),
                  ),
                )
              }
            />
          </div>
        ))}
        <div>
          <Button small icon="plus" onClick={() => configs(withGreetings(c, [...contents, '']))}>
            {s.addGreeting}
          </Button>
        </div>
      </Card>
    </>
  );
}

function Install({
  app: a,
  d,
  change,
  errors,
  dirty,
}: PartProps & Pick<Changes, 'change'> & { app: Application; dirty: boolean }) {
  const listed = d.allowedOrigins;
  const isInvalid = (o: string) => o.trim() !== '' && originOf(o) !== o.trim();
  const originErrors = Object.entries(errors).filter(([k]) => k.startsWith('allowedOrigins'));
  return (
    <>
      <Card title={s.embed} lead={s.embedLead}>
        <Code text={a.embed.snippet} label={s.embed} />
        <h3>{s.media}</h3>
        <p class="muted">{s.mediaLead}</p>
        <h3>{s.csp}</h3>
        <p class="muted">{s.cspLead}</p>
        <Code text={a.embed.csp} label={s.csp} />
        <p class="muted">
          {s.appId} <code class="wrap-any">{a.id}</code>
        </p>
      </Card>
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
                change={(v) => change({ allowedOrigins: listed.map((old, j) => (j === i ? v : old)) })}
                onBlur={() =>
                  isInvalid(o) &&
                  originOf(o) &&
                  change({ allowedOrigins: listed.map((old, j) => (j === i ? originOf(o)! : old)) })
                }
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
    </>
  );
}

function Security({
  app: a,
  d,
  change,
  errors,
  put,
  writable,
}: PartProps & Pick<Changes, 'change'> & { app: Application; put(a: Application): void; writable: boolean }) {
  const [mode, setMode] = useState<Verification>(a.verification);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState('');
  const [making, setMaking] = useState(false);
  const [overlap, setOverlap] = useState('86400');
  const [secret, setSecret] = useState('');
  const [makeBusy, setMakeBusy] = useState(false);
  const days = d.fileRetentionSeconds ? String(Math.round((d.fileRetentionSeconds / DAY) * 100) / 100) : '';
  const setVerification = async (v: Verification) => {
    setBusy(true);
    setProblem('');
    try {
      put(await api.verification(a.id, v));
      toast(s.verificationSet(s.verifications[v][0]));
    } catch (err) {
      setMode(a.verification);
      setProblem(isCode(err, 'NO_IDENTITY_SECRET') ? s.needsSecret : messageOf(err));
    } finally {
      setBusy(false);
    }
  };
  const make = async () => {
    if (makeBusy) return;
    setMakeBusy(true);
    try {
      const made = await api.newSecret(a.id, Number(overlap));
      put(made.application);
      setSecret(made.secret);
      setMaking(false);
    } catch (err) {
      setProblem(messageOf(err));
      setMaking(false);
    } finally {
      setMakeBusy(false);
    }
  };
  return (
    <>
      <Card title={s.verification} lead={s.verificationLead}>
        <Radios
          label={s.verification}
          value={mode}
          disabled={busy || !writable}
          change={(v) => {
            setMode(v);
            void setVerification(v);
          }}
          options={VERIFICATIONS.map((value) => ({
            value,
            label: s.verifications[value][0],
            hint: s.verifications[value][1],
          }))}
        />
        {problem && <Notice kind="bad">{problem}</Notice>}
        <h3>{s.secrets}</h3>
        <p class="muted">{s.secretsLead}</p>
        {a.secrets.length > 0 && (
          <ul class="plain-list">
            {a.secrets.map((x) => (
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
        {!a.secrets.length && <p class="faint">{s.noSecret}</p>}
        {writable && (
          <div>
            <Button icon={a.secrets.length ? 'refresh' : 'plus'} onClick={() => setMaking(true)}>
              {a.secrets.length ? s.rotateSecret : s.makeSecret}
            </Button>
          </div>
        )}
      </Card>
      <Card title={s.files} lead={s.filesLead}>
        <Field label={s.retention} hint={s.retentionHint} error={errors.fileRetentionSeconds}>
          <TextInput
            type="number"
            min={0}
            step="any"
            value={days}
            placeholder={s.asService}
            class="short"
            change={(v) => change({ fileRetentionSeconds: Math.max(0, Math.round(Number(v) * DAY) || 0) })}
          />
        </Field>
      </Card>
      {making && (
        <Dialog
          title={a.secrets.length ? s.rotateSecret : s.makeSecret}
          close={() => setMaking(false)}
          onSubmit={() => void make()}
          footer={
            <>
              <Button onClick={() => setMaking(false)}>{strings.cancel}</Button>
              <Button type="submit" kind="primary" busy={makeBusy}>
                {s.makeAction}
              </Button>
            </>
          }
        >
          <p>{s.makeLead}</p>
          {a.secrets.length > 0 && (
            <Field label={strings.tokens.overlap} hint={s.secretOverlapHint}>
              <Select
                value={overlap}
                change={setOverlap}
                options={strings.tokens.overlaps.map(([value, label]) => ({ value, label }))}
              />
            </Field>
          )}
        </Dialog>
      )}
      {secret && (
        <Dialog
          title={s.newSecret}
          close={() => setSecret('')}
          dismissible={false}
          wide
          footer={
            <Button kind="primary" data-autofocus onClick={() => setSecret('')}>
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
      )}
    </>
  );
}

/** Returns a shell command that computes userHash. On a real site, the site's server computes it. */
const hashExample = (secret: string): string => `printf %s "$USER_ID" | openssl dgst -sha256 -hmac '${secret}'`;
