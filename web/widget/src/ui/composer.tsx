import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from '@parley/shared/render/hooks.js';
import { Icon } from '@parley/shared/render/icon.js';
import { Pixels } from '@parley/shared/render/picture.js';
import { useScreen } from './context.js';

/** What the Widget API takes, in characters (Unicode code points). */
const MAX_TEXT = 4096;
const TELL_FROM = 200;

/** Where the visitor writes; files that are chosen, dropped or pasted wait above the text, which becomes their caption. */
export function Composer({ children, dropped, onSent }: { children?: ComponentChildren; dropped: { files: File[] } | undefined; onSent(): void }) {
  const { session, language, announce } = useScreen();
  const area = useRef<HTMLTextAreaElement>();
  const picker = useRef<HTMLInputElement>();
  const camera = useRef<HTMLInputElement>();
  const [value, setValue] = useState('');
  const [files, setFiles] = useState<File[]>([]);
  const [problem, setProblem] = useState('');
  const [limit, setLimit] = useState(Infinity);

  const left = MAX_TEXT - [...value].length;
  const ready = (value.trim() !== '' || files.length > 0) && left >= 0;

  const stage = async (chosen: File[]) => {
    if (!chosen.length) return;
    const max = await session.maxFileBytes();
    setLimit(max);
    const wrong = chosen.map((f) => {
      if (f.size > max) return language.t('fileTooBig', { name: f.name, max: language.bytes(max) });
      return f.size === 0 ? language.t('fileEmpty', { name: f.name }) : '';
    });
    const good = chosen.filter((_, i) => !wrong[i]);
    setFiles((before) => [...before, ...good]);
    const said = wrong.filter(Boolean).join(' ');
    setProblem(said);
    announce(said || language.n('filesReady', good.length));
    area.current?.focus();
  };

  useEffect(() => {
    if (dropped) void stage(dropped.files);
  }, [dropped]);

  const submit = (e?: Event) => {
    e?.preventDefault();
    if (!ready) return;
    const text = value.trim();
    files.forEach((f, i) => void session.sendFile(f, i === 0 ? text : ''));
    if (!files.length) session.sendText(text);
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
    input.value = ''; // so that the same file can be chosen again
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
                {/^image\/(?!svg)/.test(f.type) ? <Pixels source={f} alt="" class="mini" instead={<Icon name="file" />} /> : <span class="mini"><Icon name="file" /></span>}
                <span class="filetext"><span class="filename" dir="auto">{f.name}</span><span class="foot">{language.bytes(f.size)}</span></span>
                <button type="button" class="round" aria-label={language.t('removeFile', { name: f.name })} onClick={() => setFiles(files.filter((_, n) => n !== i))}><Icon name="close" /></button>
              </li>
            ))}
          </ul>
          {limit < Infinity && <p class="note">{language.t('fileLimit', { max: language.bytes(limit) })}</p>}
        </>
      )}
      <div class="line">
        <button type="button" class="round" aria-label={language.t('attach')} title={language.t('attach')} onClick={() => picker.current!.click()}><Icon name="attach" /></button>
        <button type="button" class="round camera" aria-label={language.t('camera')} title={language.t('camera')} onClick={() => camera.current!.click()}><Icon name="camera" /></button>
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
            aria-describedby={left < TELL_FROM ? 'parley-left' : undefined}
            placeholder={language.t(files.length ? 'captionPlaceholder' : 'placeholder')}
            onInput={(e) => {
              setValue(e.currentTarget.value);
              if (e.currentTarget.value) session.writing();
            }}
            onKeyDown={onKeyDown}
            onPaste={onPaste}
          />
        </div>
        <button type="submit" class="round sendbutton" aria-label={language.t('send')} title={language.t('send')} aria-disabled={!ready}><Icon name="send" flip /></button>
      </div>
      {left < TELL_FROM && <p class={left < 0 ? 'error note' : 'note'} id="parley-left">{left < 0 ? language.t('tooLong', { max: language.number(MAX_TEXT) }) : language.n('charactersLeft', left)}</p>}
    </form>
  );
}
