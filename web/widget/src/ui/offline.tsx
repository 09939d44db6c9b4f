import { useRef, useState } from '@parley/shared/render/hooks.js';
import { ApiError } from '@parley/shared/api.js';
import { text } from '@parley/shared/message.js';
import { Icon } from '@parley/shared/render/icon.js';
import { useScreen } from './context.js';

/**
 * Offline form, which replaces the composer while the agents are away: a message and an email address for the reply.
 */
export function OfflineForm({ draft }: { draft: { current: string | null } }) {
  const { session, state, language, announce } = useScreen();
  const form = useRef<HTMLFormElement>();
  const [busy, setBusy] = useState(false);
  const [errors, setErrors] = useState<Record<string, string>>({});
  const [problem, setProblem] = useState('');
  const knownEmail = session.storage.session().registration?.email;
  const opens = Date.parse(state.chat?.opensAt ?? '');
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    if (busy) return;
    const value = (name: string) => (form.current!.elements.namedItem(name) as HTMLInputElement).value.trim();
    const missing = ['message', 'email'].filter((name) => !value(name));
    setProblem('');
    setErrors(Object.fromEntries(missing.map((name) => [name, language.t('fieldRequired')])));
    if (missing.length) return (form.current!.elements.namedItem(missing[0]!) as HTMLElement).focus();
    setBusy(true);
    try {
      await session.support.sendOfflineMessage(value('message'), value('email'));
      draft.current = '';
      announce(language.t('offlineSent'));
    } catch (err) {
      const fields = err instanceof ApiError ? err.details.map((d) => d.field) : [];
      if (fields.includes('email')) {
        setErrors({ email: language.t('emailInvalid') });
        (form.current!.elements.namedItem('email') as HTMLElement).focus();
      } else setProblem(err instanceof ApiError && err.details.length ? err.message : language.t('unavailable'));
    }
    setBusy(false);
  };
  const field = (name: string) => ({
    id: `parley-left-${name}`,
    name,
    required: true,
    'aria-required': true,
    'aria-invalid': errors[name] ? ('true' as const) : undefined,
    'aria-describedby': errors[name] ? `parley-left-${name}-error` : undefined,
  });
  const error = (name: string) =>
    errors[name] && (
      <p class="error" id={`parley-left-${name}-error`}>
        {errors[name]}
      </p>
    );
  return (
    <form ref={form} class="rate" noValidate onSubmit={submit} aria-labelledby="parley-left-title">
      <h3 id="parley-left-title">{language.t('leaveMessage')}</h3>
      <p class="note">
        {opens ? language.t('awayUntil', { at: language.when(opens, Date.now()) }) : language.t('away')}
      </p>
      <div class="field">
        <label for="parley-left-message">{language.t('messageLabel')}</label>
        <textarea
          {...field('message')}
          rows={3}
          maxLength={4096}
          dir="auto"
          defaultValue={draft.current ?? ''}
          onInput={(e: InputEvent) => (draft.current = (e.currentTarget as HTMLTextAreaElement).value)}
        />
        {error('message')}
      </div>
      <div class="field">
        <label for="parley-left-email">{language.t('email')}</label>
        <input
          {...field('email')}
          type="email"
          autocomplete="email"
          inputMode="email"
          dir="ltr"
          maxLength={254}
          defaultValue={text(knownEmail)}
        />
        {error('email')}
      </div>
      {problem && (
        <p class="error" role="alert">
          {problem}
        </p>
      )}
      <button type="submit" class="primary" aria-disabled={busy}>
        <Icon name="send" flip /> {language.t('send')}
      </button>
    </form>
  );
}
