import { createContext, type ComponentChildren, type JSX, type Ref } from 'preact';
import { useContext, useId, useState } from 'preact/hooks';
import { strings } from '../strings.js';
import { IconButton } from './button.js';

interface Labelled {
  id: string;
  describedBy: string | undefined;
  invalid: boolean;
  required: boolean;
}

const FieldContext = createContext<Labelled | undefined>(undefined);

export interface FieldProps {
  label: string;
  hint?: ComponentChildren;
  error?: string | undefined;
  required?: boolean;
  optional?: boolean;
  hidden?: boolean;
  class?: string;
  children: ComponentChildren;
}

/** A label, a control, a hint and an error. The control reads its id and its ARIA attributes from the field's context. */
export function Field({ label, hint, error, required = false, optional, hidden, class: more, children }: FieldProps) {
  const id = useId();
  const describedBy = [error && `${id}-error`, hint && `${id}-hint`].filter(Boolean).join(' ') || undefined;
  return (
    <div class={['field', error && 'bad', more].filter(Boolean).join(' ')}>
      <label for={id} class={hidden ? 'sr' : undefined}>
        {label}
        {optional && <span class="opt"> {strings.optional}</span>}
      </label>
      <FieldContext.Provider value={{ id, describedBy, invalid: !!error, required }}>{children}</FieldContext.Provider>
      {error && (
        <p class="error" id={`${id}-error`}>
          {error}
        </p>
      )}
      {hint && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}

function useField() {
  const f = useContext(FieldContext);
  return f
    ? {
        id: f.id,
        'aria-describedby': f.describedBy,
        'aria-invalid': f.invalid || undefined,
        'aria-required': f.required || undefined,
      }
    : {};
}

type InputProps = Omit<JSX.IntrinsicElements['input'], 'ref' | 'onChange' | 'value'> & {
  value: string;
  change(value: string): void;
  inputRef?: Ref<HTMLInputElement>;
};

export function TextInput({ change, inputRef, class: more, ...rest }: InputProps) {
  return (
    <input
      type="text"
      ref={inputRef}
      autoComplete="off"
      spellcheck={false}
      class={more ? `input ${more}` : 'input'}
      {...useField()}
      {...rest}
      onInput={(e) => change(e.currentTarget.value)}
    />
  );
}

export function PasswordInput({ change, inputRef, ...rest }: InputProps) {
  const [shown, show] = useState(false);
  return (
    <div class="input-wrap">
      <input
        ref={inputRef}
        class="input"
        spellcheck={false}
        autoCapitalize="off"
        {...useField()}
        {...rest}
        type={shown ? 'text' : 'password'}
        onInput={(e) => change(e.currentTarget.value)}
      />
      <IconButton
        small
        icon={shown ? 'eyeOff' : 'eye'}
        label={shown ? strings.hidePassword : strings.showPassword}
        onClick={() => show(!shown)}
      />
    </div>
  );
}

type AreaProps = Omit<JSX.IntrinsicElements['textarea'], 'ref' | 'onChange' | 'value'> & {
  value: string;
  change(value: string): void;
  areaRef?: Ref<HTMLTextAreaElement>;
};

export function TextArea({ change, areaRef, class: more, ...rest }: AreaProps) {
  return (
    <textarea
      ref={areaRef}
      rows={3}
      class={more ? `input ${more}` : 'input'}
      {...useField()}
      {...rest}
      onInput={(e) => change(e.currentTarget.value)}
    />
  );
}

export interface Option {
  value: string;
  label: string;
  disabled?: boolean;
}

type SelectProps = Omit<JSX.IntrinsicElements['select'], 'ref' | 'onChange' | 'value'> & {
  value: string;
  options: Option[];
  change(value: string): void;
};

export function Select({ options, change, value, class: more, ...rest }: SelectProps) {
  return (
    <select
      class={more ? `input select ${more}` : 'input select'}
      {...useField()}
      {...rest}
      onChange={(e) => change(e.currentTarget.value)}
    >
      {options.map((o) => (
        <option key={o.value} value={o.value} selected={o.value === value} disabled={o.disabled}>
          {o.label}
        </option>
      ))}
    </select>
  );
}

export function Checkbox({
  label,
  checked,
  change,
  disabled,
  hint,
  error,
}: {
  label: ComponentChildren;
  checked: boolean;
  change(checked: boolean): void;
  disabled?: boolean;
  hint?: string | undefined;
  error?: string | undefined;
}) {
  const id = useId();
  const describedBy = [error && `${id}-error`, hint && `${id}-hint`].filter(Boolean).join(' ') || undefined;
  return (
    <div class="check">
      <input
        type="checkbox"
        id={id}
        checked={checked}
        disabled={disabled}
        aria-describedby={describedBy}
        aria-invalid={!!error || undefined}
        onChange={(e) => change(e.currentTarget.checked)}
      />
      <label for={id}>{label}</label>
      {error && (
        <p class="error" id={`${id}-error`}>
          {error}
        </p>
      )}
      {hint && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}

/** A group of radio buttons, each with a sentence that explains it. */
export function Radios<T extends string>({
  label,
  value,
  options,
  change,
  disabled,
}: {
  label: string;
  value: T;
  options: { value: T; label: string; hint: string }[];
  change(value: T): void;
  disabled?: boolean;
}) {
  const id = useId();
  return (
    <div class="radios" role="radiogroup" aria-label={label}>
      {options.map((o) => (
        <div key={o.value} class={o.value === value ? 'radio on' : 'radio'}>
          <input
            type="radio"
            name={id}
            id={`${id}-${o.value}`}
            checked={o.value === value}
            disabled={disabled}
            aria-describedby={`${id}-${o.value}-hint`}
            onChange={() => change(o.value)}
          />
          <label for={`${id}-${o.value}`}>{o.label}</label>
          <p class="hint" id={`${id}-${o.value}-hint`}>
            {o.hint}
          </p>
        </div>
      ))}
    </div>
  );
}

/** A segmented control: a row of buttons of which exactly one is pressed. */
export function Segmented<T extends string>({
  label,
  value,
  options,
  change,
}: {
  label: string;
  value: T;
  options: { value: T; label: string /** Shown after the label, unless 0. */; count?: number }[];
  change(value: T): void;
}) {
  return (
    <div class="segmented" role="group" aria-label={label}>
      {options.map((o) => (
        <button key={o.value} type="button" aria-pressed={o.value === value} onClick={() => change(o.value)}>
          {o.label}
          {!!o.count && <span class="tab-count"> {o.count >= 100 ? '99+' : o.count}</span>}
        </button>
      ))}
    </div>
  );
}
