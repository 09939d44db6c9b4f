import { useEffect, useState } from 'preact/hooks';
import { templates as api } from '../api/api.js';
import { fieldErrors, isStatus, messageOf } from '../api/client.js';
import type { AuditEntry, Template, TemplateDraft, TestPush } from '../api/types.js';
import { count, formatFull } from '../lib/format.js';
import { useLoad } from '../lib/load.js';
import { navigate, setGuard, useRoute } from '../lib/router.js';
import { can } from '../state.js';
import { strings } from '../strings.js';
import { Button, LinkButton } from '../ui/button.js';
import { Confirm, Dialog, FormDialog } from '../ui/dialog.js';
import { Field, TextArea, TextInput } from '../ui/field.js';
import { Card, Page, Table } from '../ui/page.js';
import { Badge, Empty, Failed, Notice, Skeleton } from '../ui/states.js';
import { useSubmit } from '../ui/submit.js';
import { toast } from '../ui/toast.js';
import { partsOf, placeholders } from './placeholders.js';

const s = strings.templates;
const kinds = { draft: 'plain', pending: 'warn', approved: 'good', rejected: 'bad' } as const;

export default function Templates() {
  const { parts } = useRoute();
  return parts[1] ? <Edit key={parts[1]} id={parts[1]} /> : <List />;
}

function List() {
  const { data, error, loading, reload } = useLoad((signal) => api.list(signal), []);
  const create = can('templates.write') && (
    <LinkButton href="#/templates/new" kind="primary" icon="plus">
      {s.create}
    </LinkButton>
  );
  const waiting = data?.filter((t) => t.status === 'pending').length ?? 0;
  return (
    <Page title={s.title} lead={s.lead} actions={data?.length ? create : undefined}>
      {!data && loading && <Skeleton />}
      {!data && !!error && <Failed error={error} retry={reload} />}
      {data?.length === 0 && (
        <Empty icon="template" title={s.empty} action={create}>
          {s.emptyLead}
        </Empty>
      )}
      {waiting > 0 && can('templates.approve') && <Notice>{s.waiting(count(waiting, s.templateForms))}</Notice>}
      {!!data?.length && (
        <Table label={s.title} head={[s.name, s.text, s.status]}>
          {data.map((t) => (
            <tr key={t.id}>
              <td class="wrap-any">
                <a class="cell-link" href={`#/templates/${t.id}`}>
                  {t.name}
                </a>
              </td>
              <td class="clip">
                <Highlighted text={t.text} />
              </td>
              <td>
                <Badge kind={kinds[t.status]}>{s.statuses[t.status]}</Badge>
              </td>
            </tr>
          ))}
        </Table>
      )}
    </Page>
  );
}

/** The text of a template with its placeholders highlighted. */
function Highlighted({ text }: { text: string }) {
  return <>{partsOf(text).map((p, i) => ('text' in p ? p.text : <mark key={i}>{p.name}</mark>))}</>;
}

function Edit({ id }: { id: string }) {
  const isNew = id === 'new';
  const { data, error, reload, set } = useLoad<Template | undefined>(
    (signal) => (isNew ? Promise.resolve(undefined) : api.get(id, signal)),
    [id],
  );
  const history = useLoad<AuditEntry[]>((signal) => (isNew ? Promise.resolve([]) : api.history(id, signal)), [id]);
  const [draft, setDraft] = useState<TemplateDraft | undefined>(
    isNew ? { name: '', text: '', parameters: [] } : undefined,
  );
  const [values, setValues] = useState<Record<string, string>>({});
  const [username, setUsername] = useState(s.sampleName);
  const [tried, setTried] = useState(false);
  const [busy, setBusy] = useState('');
  const [problem, setProblem] = useState<unknown>();
  const [rejecting, setRejecting] = useState(false);
  const [testing, setTesting] = useState(false);
  const [confirming, setConfirming] = useState(false);
  const writable = can('templates.write');
  const d = draft ?? (data && { name: data.name, text: data.text, parameters: data.parameters });
  const dirty =
    !!draft &&
    (isNew
      ? !!(draft.name || draft.text)
      : JSON.stringify(draft) !==
        JSON.stringify(data && { name: data.name, text: data.text, parameters: data.parameters }));
  useEffect(() => {
    setGuard(dirty ? () => window.confirm(s.leave) : undefined);
    return () => setGuard(undefined);
  }, [dirty]);
  const names = d ? placeholders(d.text) : [];
  const preview = usePreview(d, names, values, username);
  const back = { href: '#/templates', label: s.title };
  if (!d) {
    return (
      <Page title={s.one} back={back}>
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
  const errors = fieldErrors(problem);
  const change = (c: Partial<TemplateDraft>) => setDraft({ ...d, ...c });
  const defaultOf = (name: string) => d.parameters.find((p) => p.name === name)?.default ?? '';
  const setDefault = (name: string, value: string) =>
    change({ parameters: [...d.parameters.filter((p) => p.name !== name), { name, default: value }] });
  const done = (t: Template, confirmation: string) => {
    set(() => t);
    setDraft(undefined);
    toast(confirmation);
    history.reload();
  };
  const run = async (what: string, act: () => Promise<Template>, confirmation: string) => {
    if (busy) return;
    setBusy(what);
    setProblem(undefined);
    try {
      done(await act(), confirmation);
    } catch (err) {
      setProblem(err);
    } finally {
      setBusy('');
    }
  };
  /** The draft to save. Its parameters are the placeholders of the text, in their order. */
  const ready = (): TemplateDraft => ({
    name: d.name.trim(),
    text: d.text,
    parameters: names.filter((n) => n !== 'username').map((name) => ({ name, default: defaultOf(name) })),
  });
  const save = async () => {
    setTried(true);
    setConfirming(false);
    if (busy || !d.name.trim() || !d.text.trim()) return;
    if (!isNew) return run('save', () => api.update(id, ready()), s.saved);
    setBusy('save');
    setProblem(undefined);
    try {
      const t = await api.create(ready());
      setGuard(undefined);
      toast(s.saved);
      navigate(`/templates/${t.id}`, { replace: true });
    } catch (err) {
      setBusy('');
      setProblem(err);
    }
  };
  const status = data?.status;
  return (
    <Page
      title={isNew ? s.create : d.name || s.one}
      back={back}
      lead={
        data && (
          <span class="row-flex">
            <Badge kind={kinds[data.status]}>{s.statuses[data.status]}</Badge>
            <span>{s.statusLeads[data.status]}</span>
          </span>
        )
      }
      actions={
        <>
          {data && !dirty && writable && (
            <Button icon="play" onClick={() => setTesting(true)}>
              {s.test}
            </Button>
          )}
          {data && !dirty && writable && (status === 'draft' || status === 'rejected') && (
            <Button
              kind="primary"
              busy={busy === 'submit'}
              onClick={() => void run('submit', () => api.submit(id), s.submitted)}
            >
              {s.submit}
            </Button>
          )}
          {data && !dirty && can('templates.approve') && status === 'pending' && (
            <>
              <Button onClick={() => setRejecting(true)}>{s.reject}</Button>
              <Button
                kind="primary"
                icon="check"
                busy={busy === 'approve'}
                onClick={() => void run('approve', () => api.approve(id), s.approved)}
              >
                {s.approve}
              </Button>
            </>
          )}
        </>
      }
    >
      {status === 'rejected' && data?.reason && (
        <Notice kind="bad">
          <b>{s.reason}</b> {data.reason}
        </Notice>
      )}
      {!!problem && !Object.keys(errors).length && <Notice kind="bad">{messageOf(problem)}</Notice>}
      <div class="editor even">
        <fieldset class="stack" disabled={!writable}>
          <legend class="sr">{s.one}</legend>
          <Card>
            <Field
              label={s.name}
              hint={s.nameHint}
              required
              error={errors.name ?? (tried && !d.name.trim() ? strings.required : undefined)}
            >
              <TextInput value={d.name} change={(name) => change({ name })} maxLength={100} />
            </Field>
            <Field
              label={s.text}
              hint={s.textHint}
              required
              error={errors.text ?? (tried && !d.text.trim() ? strings.required : undefined)}
            >
              <TextArea rows={6} value={d.text} spellcheck change={(text) => change({ text })} />
            </Field>
            {names.some((n) => n !== 'username') && (
              <fieldset class="stack tight">
                <legend class="legend">{s.defaults}</legend>
                <p class="hint">{s.defaultsHint}</p>
                {names
                  .filter((n) => n !== 'username')
                  .map((n) => (
                    <Field key={n} label={n} error={errors[`parameters.${n}`]}>
                      <TextInput
                        value={defaultOf(n)}
                        placeholder={s.noDefault}
                        spellcheck
                        change={(v) => setDefault(n, v)}
                      />
                    </Field>
                  ))}
              </fieldset>
            )}
          </Card>
          {dirty && (
            <div class="save-bar" role="region" aria-label={strings.applications.unsaved}>
              <p>{status === 'approved' ? s.saveUnapproves : strings.applications.unsaved}</p>
              <Button onClick={() => (isNew ? navigate('/templates', { replace: true }) : setDraft(undefined))}>
                {isNew ? strings.cancel : strings.applications.discard}
              </Button>
              <Button
                kind="primary"
                busy={busy === 'save'}
                onClick={() => (status === 'approved' ? setConfirming(true) : void save())}
              >
                {strings.save}
              </Button>
            </div>
          )}
        </fieldset>
        <div class="stack">
          <Card title={strings.preview} lead={s.previewLead}>
            {names.map((n) => (
              <Field key={n} label={n === 'username' ? s.username : n}>
                <TextInput
                  value={n === 'username' ? username : (values[n] ?? '')}
                  placeholder={defaultOf(n)}
                  spellcheck
                  change={(v) => (n === 'username' ? setUsername(v) : setValues({ ...values, [n]: v }))}
                />
              </Field>
            ))}
            <div class="phone-sample">
              <p class="template-bubble" dir="auto">
                {preview?.text || <span class="faint">{s.previewEmpty}</span>}
              </p>
            </div>
            {!!preview?.missing.length && <Notice kind="warn">{s.missing(preview.missing.join(', '))}</Notice>}
          </Card>
          {!isNew && (
            <Card title={s.history}>
              {!history.data && history.loading && <Skeleton rows={3} />}
              {!history.data && !!history.error && <Notice kind="bad">{messageOf(history.error)}</Notice>}
              <ol class="timeline">
                {history.data?.map((e) => (
                  <li key={e.id}>
                    <b>{s.actions[e.action.replace('template.', '')] ?? e.action}</b>
                    <span>{s.byAt(e.user, formatFull(e.at))}</span>
                    {typeof e.after?.reason === 'string' && e.after.reason && <q>{e.after.reason}</q>}
                  </li>
                ))}
              </ol>
              {history.data?.length === 0 && <p class="faint">{s.noHistory}</p>}
            </Card>
          )}
        </div>
      </div>
      {confirming && (
        <Confirm
          title={s.unapproveTitle}
          action={strings.save}
          danger={false}
          close={() => setConfirming(false)}
          confirm={save}
        >
          <p>{s.unapproveLead}</p>
        </Confirm>
      )}
      {rejecting && (
        <Reject
          close={() => setRejecting(false)}
          reject={async (reason) => done(await api.reject(id, reason), s.rejected)}
        />
      )}
      {testing && data && <Test template={data} close={() => setTesting(false)} />}
    </Page>
  );
}

/** Renders the unsaved draft on the server. */
function usePreview(d: TemplateDraft | undefined, names: string[], values: Record<string, string>, username: string) {
  const [shown, show] = useState<{ text: string; missing: string[] }>();
  const body = d && {
    text: d.text,
    parameters: names
      .filter((n) => n !== 'username')
      .map((name) => ({ name, default: d.parameters.find((p) => p.name === name)?.default ?? '' })),
    username,
    values: Object.fromEntries(names.filter((n) => n !== 'username' && values[n]).map((n) => [n, values[n]!])),
  };
  const key = JSON.stringify(body ?? null);
  useEffect(() => {
    if (!body?.text) return show(undefined);
    const stop = new AbortController();
    const timer = setTimeout(() => api.preview(body, stop.signal).then(show, () => {}), 250);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [key]);
  return shown;
}

function Reject({ close, reject }: { close(): void; reject(reason: string): Promise<void> }) {
  const [reason, setReason] = useState('');
  const form = useSubmit(async () => {
    await reject(reason.trim());
    close();
  }, !!reason.trim());
  return (
    <FormDialog title={s.rejectTitle} close={close} form={form} action={s.reject} danger notice={!!form.error}>
      <Field
        label={s.reason}
        hint={s.reasonHint}
        required
        error={form.tried && !reason.trim() ? strings.required : undefined}
      >
        <TextArea value={reason} change={setReason} spellcheck maxLength={500} />
      </Field>
    </FormDialog>
  );
}

/** A push as a dry run: shows what would be sent, and sends nothing. */
function Test({ template, close }: { template: Template; close(): void }) {
  const names = placeholders(template.text);
  const [source, setSource] = useState('');
  const [username, setUsername] = useState('');
  const [values, setValues] = useState<Record<string, string>>({});
  const [result, setResult] = useState<TestPush>();
  const { busy, error, errors, submit } = useSubmit(async () => {
    setResult(undefined);
    const given = Object.fromEntries(Object.entries(values).filter(([, v]) => v));
    setResult(
      await api.test(template.id, { source, ...(username.trim() && { username: username.trim() }), values: given }),
    );
  });
  return (
    <Dialog
      title={s.test}
      close={close}
      onSubmit={submit}
      footer={
        <>
          <Button onClick={close}>{strings.close}</Button>
          <Button type="submit" kind="primary" icon="play" busy={busy}>
            {s.testRun}
          </Button>
        </>
      }
    >
      <p class="muted">{s.testLead}</p>
      {!!error && <Notice kind="bad">{messageOf(error)}</Notice>}
      <Field label={s.source} hint={s.sourceHint} required error={errors.source}>
        <TextInput type="tel" value={source} change={setSource} />
      </Field>
      <Field label={s.username} optional error={errors.username}>
        <TextInput value={username} change={setUsername} />
      </Field>
      {names
        .filter((n) => n !== 'username')
        .map((n) => (
          <Field key={n} label={n} error={errors[`parameters.${n}`]}>
            <TextInput
              value={values[n] ?? ''}
              placeholder={template.parameters.find((p) => p.name === n)?.default ?? ''}
              change={(v) => setValues({ ...values, [n]: v })}
            />
          </Field>
        ))}
      {result && (
        <div class="stack tight" role="status">
          <Notice kind={result.wouldSend ? 'good' : 'warn'}>
            {result.wouldSend ? (
              s.wouldSend(result.source)
            ) : (
              <>
                {s.wouldNotSend}
                <ul>
                  {result.problems.map((p) => (
                    <li key={p}>{p}</li>
                  ))}
                </ul>
              </>
            )}
          </Notice>
          {result.text && (
            <p class="template-bubble" dir="auto">
              {result.text}
            </p>
          )}
        </div>
      )}
    </Dialog>
  );
}
