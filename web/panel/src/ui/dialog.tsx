import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { messageOf } from '../api/client.js';
import { strings } from '../strings.js';
import { Button, IconButton } from './button.js';
import { Notice } from './states.js';
import { type Submit, useSubmit } from './submit.js';

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
    d.querySelector<HTMLElement>(
      '[data-autofocus], .dialog-body input:not([type=hidden]), .dialog-body textarea, .dialog-body select',
    )?.focus();
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
      {onSubmit ? (
        <form
          noValidate
          onSubmit={(e) => {
            e.preventDefault();
            onSubmit();
          }}
        >
          {inside}
        </form>
      ) : (
        <div class="form">{inside}</div>
      )}
    </dialog>
  );
}

export interface FormDialogProps {
  title: string;
  close(): void;
  form: Submit;
  /** The label of the submit button. */
  action: string;
  danger?: boolean;
  /** Whether the error is shown above the fields. By default it is if the error names no field. */
  notice?: boolean;
  children: ComponentChildren;
}

/** A dialog with a form: its error, its fields, and the buttons to cancel and to submit. */
export function FormDialog({ title, close, form, action, danger, notice, children }: FormDialogProps) {
  return (
    <Dialog
      title={title}
      close={close}
      onSubmit={form.submit}
      footer={
        <>
          <Button onClick={close}>{strings.cancel}</Button>
          <Button type="submit" kind={danger ? 'danger' : 'primary'} busy={form.busy}>
            {action}
          </Button>
        </>
      }
    >
      {(notice ?? (!!form.error && !Object.keys(form.errors).length)) && (
        <Notice kind="bad">{messageOf(form.error)}</Notice>
      )}
      {children}
    </Dialog>
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
  const [word, setWord] = useState('');
  const id = useId();
  const ready = !typed || word.trim() === typed;
  const { busy, error, submit } = useSubmit(async () => {
    await confirm();
    close();
  }, ready);
  return (
    <Dialog
      title={title}
      close={close}
      onSubmit={submit}
      footer={
        <>
          <Button onClick={close} {...(!typed && { 'data-autofocus': true })}>
            {strings.cancel}
          </Button>
          <Button type="submit" kind={danger ? 'danger' : 'primary'} busy={busy} disabled={!ready}>
            {action}
          </Button>
        </>
      }
    >
      {children}
      {typed && (
        <div class="field">
          <label for={id}>{strings.typeToConfirm(typed)}</label>
          <input
            id={id}
            class="input"
            autoComplete="off"
            spellcheck={false}
            value={word}
            onInput={(e) => setWord(e.currentTarget.value)}
          />
        </div>
      )}
      {!!error && <Notice kind="bad">{messageOf(error)}</Notice>}
    </Dialog>
  );
}
