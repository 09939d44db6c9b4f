import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { messageOf } from '../api/client.js';
import { strings } from '../strings.js';
import { Button, IconButton } from './button.js';
import { Notice } from './states.js';

export interface DialogProps {
  title: string;
  close(): void;
  /** The buttons, including the submit button of the form. */
  footer?: ComponentChildren;
  onSubmit?: () => void;
  wide?: boolean;
  /** Whether Escape and the close button close the dialog. */
  dismissible?: boolean;
  children: ComponentChildren;
}

/** A modal dialog. The browser traps the focus in it; closing restores the focus. */
export function Dialog({ title, close, footer, onSubmit, wide, dismissible = true, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const d = dialog.current!;
    const before = document.activeElement;
    d.showModal();
    d.querySelector<HTMLElement>('[data-autofocus], .dialog-body input:not([type=hidden]), .dialog-body textarea, .dialog-body select')?.focus();
    return () => {
      d.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  const inside = (
    <>
      <header class="dialog-head">
        <h2 id={id}>{title}</h2>
        {dismissible && <IconButton icon="close" label={strings.close} onClick={close} />}
      </header>
      <div class="dialog-body">{children}</div>
      {footer && <footer class="dialog-foot">{footer}</footer>}
    </>
  );
  return (
    <dialog
      ref={dialog}
      class={wide ? 'dialog wide' : 'dialog'}
      aria-labelledby={id}
      onCancel={(e) => {
        e.preventDefault();
        if (dismissible) close();
      }}
    >
      {onSubmit
        ? <form noValidate onSubmit={(e) => { e.preventDefault(); onSubmit(); }}>{inside}</form>
        : <div class="form">{inside}</div>}
    </dialog>
  );
}

export interface ConfirmProps {
  title: string;
  action: string;
  danger?: boolean;
  /** Runs the action. The dialog closes on success and shows the error on failure. */
  confirm(): Promise<unknown>;
  close(): void;
  /** The word to type before the button is enabled. */
  typed?: string;
  children: ComponentChildren;
}

export function Confirm({ title, action, danger = true, confirm, close, typed, children }: ConfirmProps) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState('');
  const [word, setWord] = useState('');
  const id = useId();
  const run = async () => {
    if (busy || (typed && word.trim() !== typed)) return;
    setBusy(true);
    setProblem('');
    try {
      await confirm();
      close();
    } catch (err) {
      setBusy(false);
      setProblem(messageOf(err));
    }
  };
  return (
    <Dialog
      title={title}
      close={close}
      onSubmit={() => void run()}
      footer={
        <>
          <Button onClick={close} {...(!typed && { 'data-autofocus': true })}>{strings.cancel}</Button>
          <Button type="submit" kind={danger ? 'danger' : 'primary'} busy={busy} disabled={!!typed && word.trim() !== typed}>{action}</Button>
        </>
      }
    >
      {children}
      {typed && (
        <div class="field">
          <label for={id}>{strings.typeToConfirm(typed)}</label>
          <input id={id} class="input" autoComplete="off" spellcheck={false} value={word} onInput={(e) => setWord(e.currentTarget.value)} />
        </div>
      )}
      {problem && <Notice kind="bad">{problem}</Notice>}
    </Dialog>
  );
}
