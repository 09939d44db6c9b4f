/**
 * The tab "Bot" of an application: the version in force, the form of the draft, and the published versions. botdraft.ts
 * has the form's rules, botbounds.tsx its folded parts, bottools.tsx the tools of a language model, connections.tsx the
 * connections to servers. botusage.tsx has what the bot has used, botconsole.tsx a conversation with the draft,
 * botcalls.tsx the log of calls.
 */
import { useEffect, useRef, useState } from 'preact/hooks';
import { applications as api, connections as connectionsApi } from '../api/api.js';
import { fieldErrors, isStatus, messageOf } from '../api/client.js';
import type { Application, Bot, BotKind, BotVersion, BotWithSecret, Connection } from '../api/types.js';
import { bytesOf, formatFull, formatNumber } from '../lib/format.js';
import { useLoad } from '../lib/load.js';
import { strings } from '../strings.js';
import { Button } from '../ui/button.js';
import { Code } from '../ui/copy.js';
import { Confirm, Dialog } from '../ui/dialog.js';
import { Checkbox, Field, Radios, Select, TextArea, TextInput } from '../ui/field.js';
import { Card } from '../ui/page.js';
import { Rotate } from '../ui/rotate.js';
import { Badge, Failed, Notice, Skeleton } from '../ui/states.js';
import { toast } from '../ui/toast.js';
import { BoundsPart, type PartProps, PricesPart } from './botbounds.js';
import { Calls } from './botcalls.js';
import { Console } from './botconsole.js';
import {
  draftDiffers,
  formOf,
  inForce,
  inForceLine,
  isBounded,
  KINDS,
  MAX_PROMPT,
  otherErrors,
  publishedLine,
  samePlaces,
  sameSettings,
  settingsOf,
  summaryOf,
  type BotForm,
} from './botdraft.js';
import { ToolsPart } from './bottools.js';
import { Usage } from './botusage.js';
import { ConnectionDialog, connectionOptions, Connections } from './connections.js';

const s = strings.bot;

interface TabProps {
  app: Application;
  /** Called when the form begins or ceases to have unsaved changes. The form is lost when the tab closes. */
  dirtyChanged(dirty: boolean): void;
}

export function BotTab({ app, dirtyChanged }: TabProps) {
  const { data: bot, error, reload, set } = useLoad((signal) => api.bot(app.id, signal), [app.id]);
  if (!bot) return error ? <Failed error={error} retry={reload} /> : <Skeleton />;
  return <BotEditor app={app} bot={bot} put={(b) => set(() => b)} reload={reload} dirtyChanged={dirtyChanged} />;
}

interface EditorProps extends TabProps {
  bot: Bot;
  put(b: Bot): void;
  reload(): void;
}

function BotEditor({ app, bot, put, reload, dirtyChanged }: EditorProps) {
  const [changed, setChanged] = useState<BotForm>();
  const [busy, setBusy] = useState<'save' | 'publish'>();
  const [problem, setProblem] = useState<unknown>();
  const [secret, setSecret] = useState('');
  const form = changed ?? formOf(bot.draft);
  const settings = settingsOf(form);
  const dirty = !!changed && !sameSettings(settings, bot.draft);
  const differs = draftDiffers(bot);
  useEffect(() => {
    dirtyChanged(dirty);
    return () => dirtyChanged(false);
  }, [dirty]);

  const change = (c: Partial<BotForm>) => {
    setChanged({ ...form, ...c });
    // Errors name tools by their places, which others may have now.
    if (c.toolServers && !samePlaces(c.toolServers, form.toolServers)) setProblem(undefined);
  };
  const discard = () => {
    setChanged(undefined);
    setProblem(undefined);
  };
  const loadNew = () => {
    discard();
    reload();
  };
  const store = async () => {
    const stored = await api.setBotDraft(app.id, settings, bot.revision);
    put(stored);
    setChanged(undefined);
    return stored;
  };
  const published = (answer: BotWithSecret) => {
    put(answer.bot);
    setSecret(answer.secret ?? '');
    toast(s.publishedToast(inForce(answer.bot)!.number));
  };
  const act = async (what: 'save' | 'publish', run: () => Promise<void>) => {
    if (busy) return;
    setBusy(what);
    setProblem(undefined);
    try {
      await run();
    } catch (err) {
      setProblem(err);
    } finally {
      setBusy(undefined);
    }
  };
  const save = () =>
    act('save', async () => {
      await store();
      toast(s.saved);
    });
  const publish = () =>
    act('publish', async () => {
      const { revision } = dirty ? await store() : bot;
      // The server is asked first, which takes a while: what is edited meanwhile stays.
      published(await api.publishBot(app.id, 0, revision));
    });

  const errors = fieldErrors(problem);
  const parts = { form, change, errors };
  return (
    <>
      <Card title={s.title} lead={s.lead}>
        <div class="row-flex">
          <p>{inForceLine(bot)}</p>
          {differs && <Badge kind="warn">{s.differs(inForce(bot)?.number)}</Badge>}
        </div>
        {app.support.agentsOnly && <Notice kind="warn">{s.agentsOnly}</Notice>}
      </Card>
      <Usage appId={app.id} version={inForce(bot)?.number} />
      <Card title={s.draft}>
        <Radios
          label={s.kind}
          value={form.kind}
          change={(kind: BotKind) => change({ kind })}
          options={KINDS.map((value) => ({ value, label: s.kinds[value][0], hint: s.kinds[value][1] }))}
        />
      </Card>
      {form.kind === 'webhook' && <WebhookPart {...parts} appId={app.id} bot={bot} put={put} showSecret={setSecret} />}
      {form.kind === 'model' && <ModelPart {...parts} />}
      {form.kind !== 'none' && <FailurePart {...parts} />}
      {isBounded(form.kind) && <BoundsPart {...parts} />}
      {form.kind !== 'none' && <Console appId={app.id} settings={settings} />}
      {!!problem && <Problem problem={problem} kind={form.kind} loadNew={loadNew} />}
      {(dirty || differs) && (
        <div class="save-bar" role="region" aria-label={s.draft}>
          <p>{dirty ? strings.applications.unsaved : s.differs(inForce(bot)?.number)}</p>
          {dirty && (
            <>
              <Button onClick={discard}>{strings.applications.discard}</Button>
              <Button busy={busy === 'save'} onClick={() => void save()}>
                {s.save}
              </Button>
            </>
          )}
          <Button kind="primary" busy={busy === 'publish'} onClick={() => void publish()}>
            {s.publish}
          </Button>
        </div>
      )}
      <Versions
        versions={bot.versions}
        dirty={dirty}
        publish={async (n) => {
          const answer = await api.publishBot(app.id, n, bot.revision);
          discard();
          published(answer);
        }}
      />
      <Calls appId={app.id} settings={settings} />
      {secret && <SecretDialog secret={secret} close={() => setSecret('')} />}
    </>
  );
}

interface ProblemProps {
  problem: unknown;
  kind: BotKind;
  loadNew(): void;
}

/** What the API has refused. The first field with an error gets the focus; without one the notice is scrolled to. */
function Problem({ problem, kind, loadNew }: ProblemProps) {
  const notice = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const field = document.querySelector<HTMLElement>('.panel-card [aria-invalid="true"]');
    if (field) field.focus();
    else notice.current!.scrollIntoView({ block: 'center' });
  }, [problem]);
  const changed = isStatus(problem, 412);
  const load = changed && (
    <Button small onClick={loadNew}>
      {s.loadNew}
    </Button>
  );
  return (
    <div ref={notice}>
      <Notice kind="bad" action={load}>
        {changed ? s.changedMeanwhile : problemText(problem, kind)}
      </Notice>
    </div>
  );
}

/** Says that fields are marked, and has the errors of fields that the form does not show. */
function problemText(problem: unknown, kind: BotKind): string {
  const errors = fieldErrors(problem);
  const others = otherErrors(errors, kind);
  const marked = Object.keys(errors).length > others.length;
  const lines = marked ? [s.correctMarked, ...others] : others;
  return lines.join(' ') || messageOf(problem);
}

interface WebhookProps extends PartProps {
  appId: string;
  bot: Bot;
  put(b: Bot): void;
  showSecret(secret: string): void;
}

/** The server that answers, and the secret that signs the requests to it. */
function WebhookPart({ form, change, errors, appId, bot, put, showSecret }: WebhookProps) {
  const [rotating, setRotating] = useState(false);
  const rotate = async (overlapSeconds: number) => {
    const answer = await api.rotateBotSecret(appId, overlapSeconds);
    put(answer.bot);
    setRotating(false);
    showSecret(answer.secret ?? '');
  };
  return (
    <Card title={s.server} lead={s.serverLead}>
      <Field label={s.url} hint={s.urlHint} required error={errors['webhook.url']}>
        <TextInput
          type="url"
          value={form.url}
          change={(url) => change({ url })}
          placeholder="https://bot.example.com/parley"
        />
      </Field>
      <Field label={s.deadline} hint={s.deadlineHint} optional error={errors['webhook.deadlineSeconds']}>
        <TextInput
          type="number"
          class="short"
          min={5}
          max={100}
          value={form.deadline}
          change={(deadline) => change({ deadline })}
        />
      </Field>
      <h3>{s.secret}</h3>
      {!bot.secrets.length && <p class="muted">{s.noSecret}</p>}
      {bot.secrets.length > 0 && (
        <>
          <ul class="plain-list" aria-label={s.secret}>
            {bot.secrets.map((x) => (
              <li key={x.createdAt}>
                <code>••••••••</code>
                <span>{strings.applications.secretMade(formatFull(x.createdAt))}</span>
                {x.expiresAt ? (
                  <Badge kind="warn">{strings.applications.secretEnds(formatFull(x.expiresAt))}</Badge>
                ) : (
                  <Badge kind="good">{strings.applications.current}</Badge>
                )}
              </li>
            ))}
          </ul>
          <div>
            <Button icon="refresh" onClick={() => setRotating(true)}>
              {s.rotate}
            </Button>
          </div>
        </>
      )}
      {rotating && <Rotate title={s.rotateTitle} text={s} close={() => setRotating(false)} rotate={rotate} />}
    </Card>
  );
}

/** The language model that answers, and the connections of the company. */
function ModelPart({ form, change, errors }: PartProps) {
  const list = useLoad((signal) => connectionsApi.list(signal), []);
  const [adding, setAdding] = useState(false);
  const put = (c: Connection) =>
    list.set((all) => (all.some((x) => x.id === c.id) ? all.map((x) => (x.id === c.id ? c : x)) : [...all, c]));
  const promptBytes = bytesOf(form.prompt);
  const promptError = promptBytes > MAX_PROMPT ? s.promptLong : undefined;
  return (
    <>
      <Card title={s.modelPart} lead={s.modelLead}>
        <Field label={s.connection} required error={errors['model.connectionId']}>
          <Select
            value={form.connectionId}
            change={(connectionId) => change({ connectionId })}
            options={connectionOptions(list, form.connectionId)}
          />
        </Field>
        {!list.data && !!list.error && (
          <Notice
            kind="bad"
            action={
              <Button small onClick={list.reload}>
                {strings.tryAgain}
              </Button>
            }
          >
            {messageOf(list.error)}
          </Notice>
        )}
        <div>
          <Button small icon="plus" onClick={() => setAdding(true)}>
            {s.connections.create}
          </Button>
        </div>
        <Field label={s.model} hint={s.modelHint} required error={errors['model.model']}>
          <TextInput value={form.model} change={(model) => change({ model })} maxLength={200} />
        </Field>
        <Field
          label={s.prompt}
          hint={s.promptHint(formatNumber(promptBytes), formatNumber(MAX_PROMPT))}
          optional
          error={errors['model.prompt'] ?? promptError}
        >
          <TextArea rows={10} spellcheck value={form.prompt} change={(prompt) => change({ prompt })} />
        </Field>
        <div class="form-grid">
          <Field label={s.history} hint={s.historyHint} optional error={errors['model.history']}>
            <TextInput type="number" min={1} max={200} value={form.history} change={(history) => change({ history })} />
          </Field>
          <Field label={s.temperature} hint={s.temperatureHint} optional error={errors['model.temperature']}>
            <TextInput
              type="number"
              min={0}
              max={2}
              step="any"
              value={form.temperature}
              change={(temperature) => change({ temperature })}
            />
          </Field>
          <Field label={s.maxTokens} hint={s.maxTokensHint} optional error={errors['model.maxTokens']}>
            <TextInput
              type="number"
              min={1}
              max={100_000}
              value={form.maxTokens}
              change={(maxTokens) => change({ maxTokens })}
            />
          </Field>
        </div>
        <Field label={s.passages} hint={<PassagesHint />} optional error={errors['model.knowledge.passages']}>
          <TextInput
            type="number"
            class="short"
            min={0}
            max={10}
            value={form.passages}
            change={(passages) => change({ passages })}
          />
        </Field>
        {Number(form.passages) > 0 && (
          <Checkbox
            label={s.expanded}
            hint={s.expandedHint}
            checked={form.expanded}
            change={(expanded) => change({ expanded })}
          />
        )}
        <PricesPart form={form} change={change} errors={errors} />
      </Card>
      <ToolsPart form={form} change={change} errors={errors} list={list} put={put} />
      {!!list.data?.length && (
        <Connections all={list.data} saved={put} removed={(id) => list.set((all) => all.filter((c) => c.id !== id))} />
      )}
      {adding && (
        <ConnectionDialog
          close={() => setAdding(false)}
          saved={(c) => {
            put(c);
            change({ connectionId: c.id });
            toast(s.connections.created);
          }}
        />
      )}
    </>
  );
}

const PassagesHint = () => (
  <>
    {s.passagesHint} <a href="#/documents">{strings.documents.title}</a>
  </>
);

/** What happens when the bot gives up on a message, and when it hands a chat to the agents. */
function FailurePart({ form, change, errors }: PartProps) {
  return (
    <Card title={s.failure} lead={s.failureLead}>
      <Field label={s.failureText} hint={s.failureTextHint} optional error={errors.failureText}>
        <TextArea
          rows={2}
          spellcheck
          maxLength={4096}
          disabled={form.silent}
          value={form.failureText}
          change={(failureText) => change({ failureText })}
        />
      </Field>
      <Checkbox label={s.silent} checked={form.silent} change={(silent) => change({ silent })} />
      <Checkbox
        label={s.onFailure}
        hint={s.onFailureHint}
        checked={form.onFailure}
        change={(onFailure) => change({ onFailure })}
      />
      <Field label={s.phrases} hint={s.phrasesHint} optional error={errors['handover.phrases']}>
        <TextArea value={form.phrases} change={(phrases) => change({ phrases })} />
      </Field>
    </Card>
  );
}

interface VersionsProps {
  versions: BotVersion[];
  dirty: boolean;
  publish(version: number): Promise<void>;
}

/** The published versions, newest first. The first one is in force. */
function Versions({ versions, dirty, publish }: VersionsProps) {
  const [again, setAgain] = useState<number>();
  if (!versions.length) return null;
  return (
    <Card title={s.versions} lead={s.versionsLead}>
      <ul class="plain-list" aria-label={s.versions}>
        {versions.map((v, i) => (
          <li key={v.number}>
            <span class="grow-1 wrap-any">
              <b>{s.version(v.number)}</b> {summaryOf(v.settings)}
              <span class="sub" title={formatFull(v.publishedAt)}>
                {publishedLine(v)}
              </span>
            </span>
            {i === 0 ? (
              <Badge kind="good">{s.inForce}</Badge>
            ) : (
              <Button small aria-label={s.againOf(v.number)} onClick={() => setAgain(v.number)}>
                {s.again}
              </Button>
            )}
          </li>
        ))}
      </ul>
      {again !== undefined && (
        <Confirm
          title={s.againTitle(again)}
          action={s.publish}
          danger={false}
          close={() => setAgain(undefined)}
          confirm={() => publish(again)}
        >
          <p>{s.againLead}</p>
          {dirty && <Notice kind="warn">{s.againLoses}</Notice>}
        </Confirm>
      )}
    </Card>
  );
}

function SecretDialog({ secret, close }: { secret: string; close(): void }) {
  return (
    <Dialog
      title={s.secretTitle}
      close={close}
      dismissible={false}
      wide
      footer={
        <Button kind="primary" data-autofocus onClick={close}>
          {strings.webhooks.secretDone}
        </Button>
      }
    >
      <Notice kind="warn">{strings.webhooks.secretOnce}</Notice>
      <p>{s.secretLead}</p>
      <div class="field">
        <span class="legend">{strings.webhooks.secret}</span>
        <Code text={secret} label={strings.webhooks.secret} />
      </div>
    </Dialog>
  );
}
