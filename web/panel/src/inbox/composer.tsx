import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { templates as templatesApi } from '../api/api.js';
import { messageOf } from '../api/client.js';
import type { Chat, Template } from '../api/types.js';
import { formatBytes, formatFull } from '../lib/format.js';
import { useLoad } from '../lib/load.js';
import { can } from '../state.js';
import { strings } from '../strings.js';
import { Button, IconButton } from '../ui/button.js';
import { Dialog } from '../ui/dialog.js';
import { Field, Select, TextInput } from '../ui/field.js';
import { Glyph } from '../ui/icon.js';
import { Empty, Failed, Notice, Skeleton } from '../ui/states.js';
import { placeholders, renderTemplate } from '../templates/placeholders.js';
import type { Conversation } from './conversation.js';

const s = strings.inbox;

export interface ComposerHandle {
  focus(): void;
}

export interface ComposerProps {
  chat: Chat;
  conversation: Conversation;
  /** Called while the agent types. */
  typing(): void;
  handle: { current: ComposerHandle | null };
}

/** The maximum length of a text message, in characters. */
const MAX_LENGTH = 4096;

/** The unsent text and files of each chat, until the page is closed. */
const drafts = new Map<string, { text: string; files: File[] }>();

export function Composer({ chat, conversation, typing, handle }: ComposerProps) {
  const draft = drafts.get(chat.id);
  const [text, setText] = useState(draft?.text ?? '');
  const [files, setFiles] = useState<File[]>(draft?.files ?? []);
  const [over, setOver] = useState(false);
  const [choices, setChoices] = useState(false);
  const [templates, setTemplates] = useState(false);
  const area = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);

  handle.current = { focus: () => area.current?.focus() };
  useEffect(() => {
    if (text || files.length) drafts.set(chat.id, { text, files });
    else drafts.delete(chat.id);
  }, [text, files]);
  useEffect(
    () => () => {
      handle.current = null;
    },
    [],
  );

  if (chat.status === 'closed')
    return (
      <div class="composer shut">
        <p>
          <Glyph name="archive" />
          {s.closedNote}
          {chat.closedAt && <span class="faint"> {formatFull(chat.closedAt)}</span>}
        </p>
      </div>
    );

  const outside = !chat.inWindow || (!!chat.windowExpiresAt && Date.parse(chat.windowExpiresAt) < Date.now());
  if (outside) {
    return (
      <div class="composer shut">
        <p>
          <Glyph name="clock" />
          <span>{s.windowNote(formatFull(chat.windowExpiresAt!))}</span>
        </p>
        <Button kind="primary" icon="template" onClick={() => setTemplates(true)}>
          {s.useTemplate}
        </Button>
        {templates && (
          <TemplatePicker chat={chat} close={() => setTemplates(false)} send={(body) => conversation.send(body)} />
        )}
      </div>
    );
  }

  const write = (value: string) => {
    setText(value);
    if (value) typing();
  };
  const tooLong = [...text].length > MAX_LENGTH;
  const ready = (text.trim() !== '' || files.length > 0) && !tooLong;
  const send = () => {
    if (!ready) return;
    files.forEach((f, i) => conversation.sendFile(f, f.name, i === files.length - 1 ? text.trim() : ''));
    if (!files.length) conversation.send({ type: 'TEXT', data: { text: text.trim() } });
    setText('');
    setFiles([]);
    area.current?.focus();
  };
  const add = (more: Iterable<File>) => setFiles((old) => [...old, ...[...more].filter((f) => f.size > 0)]);
  const keys = (e: KeyboardEvent) => {
    if (e.key === 'Enter' && !e.shiftKey && !e.isComposing) {
      e.preventDefault();
      send();
    } else if (e.key === 'Escape') {
      e.preventDefault();
      document.querySelector<HTMLElement>('.log')?.focus();
    }
  };

  return (
    <div
      class={over ? 'composer over' : 'composer'}
      onDragOver={(e) => {
        if (!e.dataTransfer?.types.includes('Files')) return;
        e.preventDefault();
        setOver(true);
      }}
      onDragLeave={(e) => !(e.currentTarget as Node).contains(e.relatedTarget as Node) && setOver(false)}
      onDrop={(e) => {
        e.preventDefault();
        setOver(false);
        add(e.dataTransfer?.files ?? []);
      }}
    >
      {chat.control === 'bot' && chat.status !== 'pending' && (
        <p class="composer-note">
          <Glyph name="bot" size={16} />
          {s.replyTakesOver}
        </p>
      )}
      {files.length > 0 && (
        <ul class="staged" aria-label={s.staged}>
          {files.map((f, i) => (
            <li key={`${f.name}${i}`}>
              <Glyph name="attach" size={16} />
              <span class="staged-name">{f.name}</span>
              <span class="faint">{formatBytes(f.size)}</span>
              <IconButton
                small
                icon="close"
                label={s.removeFile(f.name)}
                onClick={() => {
                  setFiles(files.filter((_, j) => j !== i));
                  area.current?.focus();
                }}
              />
            </li>
          ))}
        </ul>
      )}
      <div class="grow" data-value={text}>
        <textarea
          ref={area}
          rows={1}
          aria-label={s.reply}
          aria-invalid={tooLong || undefined}
          placeholder={files.length ? s.caption : s.placeholder(chat.visitor.name)}
          value={text}
          onInput={(e) => write(e.currentTarget.value)}
          onKeyDown={keys}
          onPaste={(e) => {
            const pasted = e.clipboardData?.files;
            if (!pasted?.length) return;
            e.preventDefault();
            add(pasted);
          }}
        />
      </div>
      <div class="composer-bar">
        <IconButton icon="attach" label={s.attach} onClick={() => picker.current?.click()} />
        <input
          ref={picker}
          type="file"
          multiple
          hidden
          tabIndex={-1}
          aria-hidden="true"
          onChange={(e) => {
            add(e.currentTarget.files ?? []);
            e.currentTarget.value = '';
            area.current?.focus();
          }}
        />
        <IconButton icon="choices" label={s.offerChoices} onClick={() => setChoices(true)} />
        {can('templates.read') && (
          <IconButton icon="template" label={s.useTemplate} onClick={() => setTemplates(true)} />
        )}
        <span class="grow-1" />
        {tooLong ? (
          <span class="error" role="alert">
            {s.tooLong(MAX_LENGTH)}
          </span>
        ) : (
          <span class="send-hint" aria-hidden="true">
            {s.enterSends}
          </span>
        )}
        <Button kind="primary" icon="send" onClick={send} aria-disabled={!ready} class={ready ? '' : 'idle'}>
          {s.send}
        </Button>
      </div>
      {choices && (
        <ChoicesDialog
          text={text}
          close={() => setChoices(false)}
          send={(data) => {
            conversation.send({ type: 'MULTIPLE_CHOICE', data });
            setText('');
          }}
        />
      )}
      {templates && (
        <TemplatePicker chat={chat} close={() => setTemplates(false)} send={(body) => conversation.send(body)} />
      )}
    </div>
  );
}

const MAX_CHOICES = 10;

/** Composes a question with answers as buttons. */
function ChoicesDialog({
  text,
  close,
  send,
}: {
  text: string;
  close(): void;
  send(data: { text: string; choices: { title: string; payload: string }[] }): void;
}) {
  const [question, setQuestion] = useState(text);
  const [titles, setTitles] = useState(['', '']);
  const [tried, setTried] = useState(false);
  const given = titles.map((t) => t.trim()).filter(Boolean);
  const hasDuplicates = new Set(given).size !== given.length;
  const submit = () => {
    setTried(true);
    if (!question.trim() || given.length < 1 || hasDuplicates) return;
    send({ text: question.trim(), choices: given.map((title) => ({ title, payload: title })) });
    close();
  };
  return (
    <Dialog
      title={s.offerChoices}
      close={close}
      onSubmit={submit}
      footer={
        <>
          <Button onClick={close}>{strings.cancel}</Button>
          <Button type="submit" kind="primary" icon="send">
            {s.send}
          </Button>
        </>
      }
    >
      <Field label={s.question} required error={tried && !question.trim() ? strings.required : undefined}>
        <TextInput value={question} change={setQuestion} spellcheck maxLength={MAX_LENGTH} />
      </Field>
      <fieldset class="stack tight">
        <legend class="legend">{s.answers}</legend>
        {titles.map((t, i) => (
          <div key={i} class="row-flex nowrap">
            <Field
              hidden
              class="grow-1"
              label={s.answer(i + 1)}
              error={tried && i === 0 && given.length < 1 ? s.oneAnswer : undefined}
            >
              <TextInput
                value={t}
                placeholder={s.answer(i + 1)}
                spellcheck
                maxLength={100}
                change={(v) => setTitles(titles.map((old, j) => (j === i ? v : old)))}
              />
            </Field>
            {titles.length > 1 && (
              <IconButton
                icon="close"
                label={s.removeAnswer(i + 1)}
                onClick={() => setTitles(titles.filter((_, j) => j !== i))}
              />
            )}
          </div>
        ))}
        {hasDuplicates && (
          <p class="error" role="alert">
            {s.answersTwice}
          </p>
        )}
        {titles.length < MAX_CHOICES && (
          <div>
            <Button small kind="quiet" icon="plus" onClick={() => setTitles([...titles, ''])}>
              {s.addAnswer}
            </Button>
          </div>
        )}
      </fieldset>
    </Dialog>
  );
}

function TemplatePicker({
  chat,
  close,
  send,
}: {
  chat: Chat;
  close(): void;
  send(body: { type: 'TEMPLATE'; templateId: string; values: Record<string, string>; data: { text: string } }): void;
}) {
  const { data, error, loading, reload } = useLoad((signal) => templatesApi.list(signal), []);
  const approved = useMemo(() => data?.filter((t) => t.status === 'approved') ?? [], [data]);
  const [chosen, setChosen] = useState('');
  const [values, setValues] = useState<Record<string, string>>({});
  const [tried, setTried] = useState(false);
  const template: Template | undefined = approved.find((t) => t.id === chosen) ?? approved[0];
  const names = template ? placeholders(template.text) : [];
  const defaults = Object.fromEntries((template?.parameters ?? []).map((p) => [p.name, p.default]));
  const filled: Record<string, string> = {
    ...(names.includes('username') && { username: chat.visitor.name }),
    ...values,
  };
  const missing = names.filter((n) => n !== 'username' && !filled[n]?.trim() && !defaults[n]);
  const submit = () => {
    setTried(true);
    if (!template || missing.length) return;
    const given = Object.fromEntries(names.map((n) => [n, filled[n]?.trim() ?? '']).filter(([, v]) => v));
    send({ type: 'TEMPLATE', templateId: template.id, values: given, data: { text: renderTemplate(template, given) } });
    close();
  };
  return (
    <Dialog
      title={s.useTemplate}
      close={close}
      onSubmit={submit}
      footer={
        <>
          <Button onClick={close}>{strings.cancel}</Button>
          <Button type="submit" kind="primary" icon="send" disabled={!template}>
            {s.send}
          </Button>
        </>
      }
    >
      {loading && !data && <Skeleton rows={3} />}
      {!!error && !data && <Failed error={error} retry={reload} />}
      {data && !approved.length && (
        <Empty icon="template" title={s.noTemplates}>
          {s.noTemplatesLead}
        </Empty>
      )}
      {template && (
        <>
          <Field label={strings.templates.one}>
            <Select
              value={template.id}
              change={(id) => {
                setChosen(id);
                setValues({});
              }}
              options={approved.map((t) => ({ value: t.id, label: t.name }))}
            />
          </Field>
          {names.map((n) => (
            <Field
              key={`${template.id}${n}`}
              label={n}
              required={missing.includes(n)}
              optional={!!defaults[n] || n === 'username'}
              error={tried && missing.includes(n) ? strings.required : undefined}
            >
              <TextInput
                value={filled[n] ?? ''}
                placeholder={defaults[n] ?? ''}
                spellcheck
                change={(v) => setValues({ ...values, [n]: v })}
              />
            </Field>
          ))}
          <div class="field">
            <span class="legend">{strings.preview}</span>
            <p class="template-bubble" dir="auto">
              {renderTemplate(template, filled)}
            </p>
          </div>
          {!chat.inWindow && <Notice>{s.templateAfterWindow}</Notice>}
        </>
      )}
      {!!error && data && <Notice kind="bad">{messageOf(error)}</Notice>}
    </Dialog>
  );
}
