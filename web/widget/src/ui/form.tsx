import { useEffect, useRef } from '@parley/shared/render/hooks.js';
import type { TextKey } from '../i18n.js';
import { useScreen } from './context.js';

const KNOWN_FIELDS: Record<string, { type: string; autocomplete: string; inputmode?: 'numeric' | 'email' }> = {
  firstName: { type: 'text', autocomplete: 'given-name' },
  lastName: { type: 'text', autocomplete: 'family-name' },
  email: { type: 'email', autocomplete: 'email', inputmode: 'email' },
  phone: { type: 'tel', autocomplete: 'tel', inputmode: 'numeric' },
  userId: { type: 'text', autocomplete: 'off' },
};

/** The pre-chat form. It checks only for missing fields; the server validates the values. */
export function Form() {
  const { session, state, language, announce } = useScreen();
  const form = useRef<HTMLFormElement>();
  const { busy, errors, problem } = state.form;
  const fields = session.registration.formFields;
  const contacts = fields.filter((f) => ['email', 'phone', 'userId'].includes(f.name));
  const anyContact = contacts.length > 0 && !contacts.some((f) => f.required);

  const errorText = (name: string, value: string): string => {
    if (!value && errors[name]) return language.t('fieldRequired');
    if (name === 'email' && errors.email) return language.t('emailInvalid');
    if (name === 'phone' && errors.phone) return language.t('phoneInvalid');
    return errors[name] ?? '';
  };

  const invalid = Object.keys(errors).filter((name) => fields.some((f) => f.name === name));
  useEffect(() => {
    if (!invalid.length) return;
    announce(language.n('formErrors', invalid.length));
    form.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus();
  }, [errors]);

  const submit = (e: SubmitEvent) => {
    e.preventDefault();
    if (busy) return;
    const values: Record<string, string> = {};
    for (const f of fields)
      values[f.name] = (form.current!.elements.namedItem(f.name) as HTMLInputElement).value.trim();
    if (values.phone) values.phone = values.phone.replace(/[\s()+.-]/g, '');
    const missing = fields.filter((f) => f.required && !values[f.name]).map((f) => f.name);
    if (anyContact && !missing.length && !contacts.some((f) => values[f.name])) missing.push(contacts[0]!.name);
    if (missing.length) {
      const text = language.t('fieldRequired');
      session.dispatch({
        type: 'form',
        form: { errors: Object.fromEntries(missing.map((n) => [n, text])), problem: '' },
      });
      return;
    }
    void session.registration.register(values);
  };

  return (
    <div class="scroll formpage">
      <form ref={form} class="card" noValidate onSubmit={submit} aria-labelledby="parley-form-title">
        <h2 id="parley-form-title">{language.t('formTitle')}</h2>
        <p class="lead">{language.t(state.notice === 'sessionEnded' ? 'sessionEnded' : 'formIntro')}</p>
        {fields.map(({ name, required }) => {
          const known = KNOWN_FIELDS[name];
          const input = form.current?.elements.namedItem(name) as HTMLInputElement | null;
          const error = errorText(name, input?.value ?? '');
          return (
            <div class="field">
              <label for={`parley-${name}`}>
                {known ? language.t(name as TextKey) : name}
                {!required && !(anyContact && contacts[0]!.name === name) && (
                  <span class="opt"> ({language.t('optional')})</span>
                )}
              </label>
              <input
                id={`parley-${name}`}
                name={name}
                type={known?.type ?? 'text'}
                autocomplete={known?.autocomplete ?? 'off'}
                inputMode={known?.inputmode}
                dir={name === 'email' || name === 'phone' ? 'ltr' : 'auto'}
                maxLength={254}
                required={required}
                aria-required={required}
                aria-invalid={error ? 'true' : undefined}
                aria-describedby={error ? `parley-${name}-error` : undefined}
              />
              {error && (
                <p class="error" id={`parley-${name}-error`}>
                  {error}
                </p>
              )}
            </div>
          );
        })}
        {problem && !invalid.length && (
          <p class="error" role="alert">
            {language.t(problem)}
          </p>
        )}
        <button type="submit" class="primary" aria-disabled={busy}>
          {language.t(busy ? 'starting' : 'start')}
        </button>
      </form>
    </div>
  );
}
