import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from '@parley/shared/render/hooks.js';
import { Icon } from '@parley/shared/render/icon.js';
import { BitmapCanvas } from '@parley/shared/render/picture.js';
import { useScreen } from './context.js';

/** Text limit of the Widget API, in Unicode code points. */
const MAX_TEXT_LENGTH = 4096;
const COUNTER_THRESHOLD = 200;

interface ComposerProps {
  children?: ComponentChildren;
  draft: { current: string | null };
  dropped: { files: File[] } | undefined;
  onSent(): void;
}

/**
 * The message input. Files that are chosen, dropped or pasted are staged above the text, which becomes the caption of
 * the first file.
 */
export function Composer({ children, draft, dropped, onSent }: ComposerProps) {
  const { session, language, announce } = useScreen();
  const area = useRef<HTMLTextAreaElement>();
  const picker = useRef<HTMLInputElement>();
  const camera = useRef<HTMLInputElement>();
  const [value, setValue] = useState(draft.current ?? '');
  const [files, setFiles] = useState<File[]>([]);
  const [problem, setProblem] = useState('');
  const [limit, setLimit] = useState(Infinity);

  draft.current = value;
  const left = MAX_TEXT_LENGTH - [...value].length;
  const ready = (value.trim() !== '' || files.length > 0) && left >= 0;

  const stage = async (chosen: File[]) => {
    if (!chosen.length) return;
    const max = await session.sending.maxFileBytes();
    setLimit(max);
    const errors = chosen.map((f) => {
      if (f.size > max) return language.t('fileTooBig', { name: f.name, max: language.bytes(max) });
      return f.size === 0 ? language.t('fileEmpty', { name: f.name }) : '';
    });
    const valid = chosen.filter((_, i) => !errors[i]);
    setFiles((before) => [...before, ...valid]);
    const errorText = errors.filter(Boolean).join(' ');
    setProblem(errorText);
    announce(errorText || language.n('filesReady', valid.length));
    area.current?.focus();
  };

  useEffect(() => {
    if (value) area.current?.focus(); // it has replaced the offline form, in which the visitor was writing
  }, []);

  useEffect(() => {
    if (dropped) void stage(dropped.files);
  }, [dropped]);

  const submit = (e?: Event) => {
    e?.preventDefault();
    if (!ready) return;
    const text = value.trim();
    files.forEach((f, i) => void session.sending.sendFile(f, i === 0 ? text : ''));
    if (!files.length) session.sending.sendText(text);
    setValue('');
    setFiles([]);
    setProblem('');
    onSent();
    area.current?.focus();
  };

  const onKeyDown = (e: KeyboardEvent) => {
    if (e.key === 'Enter' && !e.shiftKey && !e.isComposing && e.keyCode !== 229) submit(e);
  };
  const onPaste = (e: ClipboardEvent) => {
    const pasted = [...(e.clipboardData?.files ?? [])];
    if (!pasted.length) return;
    e.preventDefault();
    void stage(pasted);
  };
  const choose = (e: Event) => {
    const input = e.currentTarget as HTMLInputElement;
    void stage([...(input.files ?? [])]);
    input.value = ''; // a second choice of the same file fires change again
  };

  return (
    <form class="composer" onSubmit={submit} data-files={files.length}>
      {children}
      {problem && <p class="error note">{problem}</p>}
      {files.length > 0 && (
        <>
          <ul class="staged">
            {files.map((f, i) => (
              <li>
                {/^image\/(?!svg)/.test(f.type) ? (
                  <BitmapCanvas source={f} alt="" class="mini" fallback={<Icon name="file" />} />
                ) : (
                  <span class="mini">
                    <Icon name="file" />
                  </span>
                )}
                <span class="filetext">
                  <span class="filename" dir="auto">
                    {f.name}
                  </span>
                  <span class="foot">{language.bytes(f.size)}</span>
                </span>
                <button
                  type="button"
                  class="round"
                  aria-label={language.t('removeFile', { name: f.name })}
                  onClick={() => setFiles(files.filter((_, n) => n !== i))}
                >
                  <Icon name="close" />
                </button>
              </li>
            ))}
          </ul>
          {limit < Infinity && <p class="note">{language.t('fileLimit', { max: language.bytes(limit) })}</p>}
        </>
      )}
      <div class="line">
        <button
          type="button"
          class="round"
          aria-label={language.t('attach')}
          title={language.t('attach')}
          onClick={() => picker.current!.click()}
        >
          <Icon name="attach" />
        </button>
        <button
          type="button"
          class="round camera"
          aria-label={language.t('camera')}
          title={language.t('camera')}
          onClick={() => camera.current!.click()}
        >
          <Icon name="camera" />
        </button>
        <input ref={picker} type="file" multiple hidden onChange={choose} />
        <input ref={camera} type="file" accept="image/*" capture="environment" hidden onChange={choose} />
        <div class="grow" data-value={value}>
          <textarea
            ref={area}
            id="parley-text"
            rows={1}
            dir={value ? 'auto' : undefined}
            enterkeyhint="send"
            value={value}
            aria-label={language.t('messageLabel')}
            aria-invalid={left < 0 || undefined}
            aria-describedby={left < COUNTER_THRESHOLD ? 'parley-left' : undefined}
            placeholder={language.t(files.length ? 'captionPlaceholder' : 'placeholder')}
            onInput={(e) => {
              setValue(e.currentTarget.value);
              if (e.currentTarget.value) session.notifyTyping();
            }}
            onKeyDown={onKeyDown}
            onPaste={onPaste}
          />
        </div>
        <button
          type="submit"
          class="round sendbutton"
          aria-label={language.t('send')}
          title={language.t('send')}
          aria-disabled={!ready}
        >
          <Icon name="send" flip />
        </button>
      </div>
      {left < COUNTER_THRESHOLD && (
        <p class={left < 0 ? 'error note' : 'note'} id="parley-left">
          {left < 0
            ? language.t('tooLong', { max: language.number(MAX_TEXT_LENGTH) })
            : language.n('charactersLeft', left)}
        </p>
      )}
    </form>
  );
}
