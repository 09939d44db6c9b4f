/** The page with the form of a document, new or stored. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { documents as api } from '../api/api.js';
import { isStatus, messageOf } from '../api/client.js';
import type { CreateDocument, DocumentFormat } from '../api/types.js';
import { bytesOf, formatBytes } from '../lib/format.js';
import { useLoad } from '../lib/load.js';
import { navigate, setGuard } from '../lib/router.js';
import { strings } from '../strings.js';
import { Button } from '../ui/button.js';
import { Field, Select, TextArea, TextInput } from '../ui/field.js';
import { Card, Page } from '../ui/page.js';
import { Empty, Failed, Notice, Skeleton } from '../ui/states.js';
import { useSubmit } from '../ui/submit.js';
import { toast } from '../ui/toast.js';
import {
  ACCEPTED,
  contentOf,
  contentOfFile,
  type DocumentForm,
  type FileContent,
  FORMATS,
  formOf,
  isPDF,
  MAX_PDF,
  MAX_TEXT,
  newForm,
  sameForm,
  titleOfFile,
} from './document.js';
import { Fetches, Refresh, SourceChoice } from './fetch.js';

const s = strings.documents;

const back = { href: '#/documents', label: s.title };

/** The form of a new document; with a question, of its answer. */
export function NewDocument({ question }: { question: string }) {
  const create = async (content: CreateDocument) => {
    await api.create(content);
    toast(s.created);
  };
  return <Editor title={s.create} initial={newForm(question)} store={create} />;
}

export function EditDocument({ id }: { id: string }) {
  const { data, error, reload } = useLoad((signal) => api.get(id, signal), [id]);
  if (!data)
    return (
      <Page title={s.one} back={back}>
        {error ? <NotLoaded error={error} retry={reload} /> : <Skeleton />}
      </Page>
    );
  const update = async (content: CreateDocument) => {
    await api.update(id, content, data.revision);
    toast(s.saved);
  };
  const fetches = data.fetch && <Fetches id={id} fetch={data.fetch} reload={reload} />;
  return (
    <Editor
      key={data.revision}
      title={data.title}
      initial={formOf(data)}
      fetches={fetches}
      store={update}
      loadNew={reload}
    />
  );
}

function NotLoaded({ error, retry }: { error: unknown; retry(): void }) {
  if (!isStatus(error, 404)) return <Failed error={error} retry={retry} />;
  return (
    <Empty icon="search" title={strings.notFound}>
      {s.goneLead}
    </Empty>
  );
}

interface EditorProps {
  title: string;
  initial: DocumentForm;
  /** The state of a document whose text is fetched. */
  fetches?: ComponentChildren;
  store(content: CreateDocument): Promise<void>;
  /** Loads the stored document again, in place of the changes. */
  loadNew?(): void;
}

function Editor({ title, initial, fetches, store, loadNew }: EditorProps) {
  const [form, setForm] = useState(initial);
  const change = (c: Partial<DocumentForm>) => setForm((f) => ({ ...f, ...c }));
  const dirty = !sameForm(form, initial);
  useEffect(() => {
    setGuard(dirty ? () => window.confirm(s.leave) : undefined);
    return () => setGuard(undefined);
  }, [dirty]);

  const bytes = bytesOf(form.text);
  const tooLong = bytes > MAX_TEXT ? s.textLong : undefined;
  const byHand = !form.refreshHours;
  const missing = {
    title: byHand && !form.title.trim(),
    text: byHand && !form.text.trim(),
    address: !byHand && !form.address.trim(),
  };
  const { busy, error, errors, tried, submit } = useSubmit(
    async () => {
      await store(contentOf(form));
      setGuard(undefined);
      navigate('/documents');
    },
    !missing.title && !missing.text && !missing.address && !(byHand && tooLong),
  );
  const at = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (tried) at.current!.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [error, tried]);
  const required = (isMissing: boolean) => (tried && isMissing ? strings.required : undefined);
  return (
    <Page title={title} back={back}>
      <form ref={at} class="stack" noValidate onSubmit={submit}>
        {!!error && !Object.keys(errors).length && <Problem error={error} loadNew={loadNew} />}
        {fetches}
        <Card>
          <SourceChoice form={form} change={change} />
          {byHand && <FileChoice form={form} change={change} />}
          <Field
            label={s.name}
            hint={byHand ? s.nameHint : s.titleFetched}
            required={byHand}
            optional={!byHand}
            error={errors.title ?? required(missing.title)}
          >
            <TextInput value={form.title} change={(name) => change({ title: name })} maxLength={200} spellcheck />
          </Field>
          <Field
            label={s.address}
            hint={byHand ? s.addressHint : s.addressFetched}
            required={!byHand}
            optional={byHand}
            error={errors.address ?? required(missing.address)}
          >
            <TextInput
              type="url"
              value={form.address}
              change={(address) => change({ address })}
              placeholder="https://shop.example.com/returns"
            />
          </Field>
          {byHand ? (
            <>
              <Field label={s.format} error={errors.format}>
                <Select
                  class="narrow"
                  value={form.format}
                  change={(format) => change({ format: format as DocumentFormat })}
                  options={FORMATS.map((value) => ({ value, label: s.formats[value] }))}
                />
              </Field>
              <Field
                label={s.text}
                hint={s.textHint(formatBytes(bytes), formatBytes(MAX_TEXT))}
                required
                error={errors.text ?? tooLong ?? required(missing.text)}
              >
                <TextArea rows={22} spellcheck value={form.text} change={(text) => change({ text })} />
              </Field>
            </>
          ) : (
            <Refresh form={form} change={change} error={errors.refreshHours} />
          )}
        </Card>
        <div class="save-bar" role="region" aria-label={s.one}>
          <p>{dirty && strings.applications.unsaved}</p>
          <Button onClick={() => navigate('/documents')}>{strings.cancel}</Button>
          <Button type="submit" kind="primary" busy={busy}>
            {strings.save}
          </Button>
        </div>
      </form>
    </Page>
  );
}

/** What the API has refused, apart from the errors of fields. */
function Problem({ error, loadNew }: { error: unknown; loadNew: (() => void) | undefined }) {
  const notice = useRef<HTMLDivElement>(null);
  useEffect(() => notice.current!.scrollIntoView({ block: 'center' }), [error]);
  const changed = isStatus(error, 412);
  const load = changed && loadNew && (
    <Button small onClick={loadNew}>
      {s.loadNew}
    </Button>
  );
  return (
    <div ref={notice}>
      <Notice kind="bad" action={load}>
        {changed ? s.changedMeanwhile : messageOf(error)}
      </Notice>
    </div>
  );
}

/** Has the API read a PDF file. */
async function readPDF(file: File): Promise<FileContent> {
  if (file.size > MAX_PDF) return { problem: s.fileLarge(formatBytes(MAX_PDF)) };
  try {
    return { ...(await api.readPDF(file)), title: titleOfFile(file.name) };
  } catch (err) {
    return { problem: messageOf(err) };
  }
}

/** Reads a file. Of one that is too large, only as much as shows that it is. */
async function readFile(file: File): Promise<FileContent> {
  try {
    const bytes = await file.slice(0, MAX_TEXT + 1).arrayBuffer();
    return contentOfFile(file.name, new Uint8Array(bytes));
  } catch {
    return { problem: s.fileUnreadable }; // such as a file that has been deleted
  }
}

interface FileProps {
  form: DocumentForm;
  change(c: Partial<DocumentForm>): void;
}

/** Fills the form from a file. Nothing is stored until the form is saved. */
function FileChoice({ form, change }: FileProps) {
  const picker = useRef<HTMLInputElement>(null);
  const [problem, setProblem] = useState('');
  const [busy, setBusy] = useState(false);
  const read = async (file: File) => {
    setBusy(true);
    const content = await (isPDF(file.name) ? readPDF(file) : readFile(file));
    setBusy(false);
    if ('problem' in content) return setProblem(content.problem);
    setProblem('');
    change({ format: content.format, text: content.text, ...(!form.title.trim() && { title: content.title }) });
  };
  return (
    <div class="stack tight">
      <div class="row-flex">
        <Button icon="attach" busy={busy} onClick={() => picker.current!.click()}>
          {s.chooseFile}
        </Button>
        <span class="muted">{s.fileHint}</span>
      </div>
      <input
        ref={picker}
        type="file"
        accept={ACCEPTED}
        hidden
        tabIndex={-1}
        aria-hidden="true"
        onChange={(e) => {
          const file = e.currentTarget.files?.[0];
          e.currentTarget.value = '';
          if (file) void read(file);
        }}
      />
      {problem && <Notice kind="bad">{problem}</Notice>}
    </div>
  );
}
