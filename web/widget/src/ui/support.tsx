import { useRef, useState } from '@parley/shared/render/hooks.js';
import type { ChatState } from '@parley/shared/api.js';
import { ApiError } from '@parley/shared/api.js';
import { text, type Message } from '@parley/shared/message.js';
import { Icon } from '@parley/shared/render/icon.js';
import type { Language } from '../i18n.js';
import { noticeKind } from '../state/support.js';
import { useScreen } from './context.js';

const STARS = [1, 2, 3, 4, 5];

/** A notice of the server in the visitor's language; empty for any other message, and for one that this widget does not know. */
export function noticeText(m: Message, language: Language): string {
  switch (noticeKind(m)) {
    case 'handover': {
      const opens = Date.parse(text(m.data.opensAt));
      if (!m.data.away) return language.t('handover');
      return opens ? language.t('awayUntil', { at: language.full(opens) }) : language.t('away');
    }
    case 'offline':
      return language.t('offlineSent');
    case 'closed':
      return language.t('chatClosed');
  }
  return '';
}

/** Whether the visitor can only leave a message: the agents have the chat, and are away. */
export const isAway = (chat: ChatState | undefined): boolean => !!chat?.waiting && !chat.available && chat.handoverBy !== 'offline_form';

/** What stands above the composer: the way to a person, or the question how it was. */
export function SupportBar() {
  const { state, session, language, announce } = useScreen();
  const [busy, setBusy] = useState(false);
  const { chat } = state;
  if (chat?.rateableUntil && state.skipped !== chat.chatId) return <Rating key={chat.chatId} chat={chat} />;
  if (!chat?.handoverOffered) return null;
  const ask = async () => {
    if (busy) return;
    setBusy(true);
    await session.support.handOver().catch(() => announce(language.t('unavailable')));
    setBusy(false);
  };
  return (
    <div class="ask">
      <button type="button" class="textbutton" aria-disabled={busy} onClick={() => void ask()}>{language.t('talkToPerson')}</button>
    </div>
  );
}

/** One to five stars and a comment; what was sent can be changed for a while. */
function Rating({ chat }: { chat: ChatState }) {
  const { session, language, announce } = useScreen();
  const own = chat.rating;
  const [open, setOpen] = useState(!own);
  const [score, setScore] = useState(own?.score ?? 0);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState('');
  const comment = useRef<HTMLTextAreaElement>();
  if (!open) {
    return (
      <div class="ask" role="status">
        <span class="stars small" role="img" aria-label={language.n('stars', score)}>{STARS.map((n) => <Star key={n} on={n <= score} />)}</span> {language.t('rateThanks')}{' '}
        <button type="button" class="textbutton" onClick={() => setOpen(true)}>{language.t('rateChange')}</button>
      </div>
    );
  }
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    if (busy || !score) return;
    setBusy(true);
    setProblem('');
    try {
      await session.support.rate(chat.chatId, score, comment.current!.value.trim());
      setOpen(false);
      announce(language.t('rateThanks'));
    } catch (err) {
      setProblem(err instanceof ApiError && err.status === 409 ? err.message : language.t('unavailable'));
    }
    setBusy(false);
  };
  return (
    <form class="rate" onSubmit={submit}>
      <fieldset>
        <legend>{language.t('rateTitle')}</legend>
        <div class="stars">
          {STARS.map((n) => (
            <label key={n} class={n <= score ? 'star on' : 'star'}>
              <input type="radio" name="parley-score" class="sr" value={n} checked={n === score} onChange={() => setScore(n)} />
              <Star on={n <= score} />
              <span class="sr">{language.n('stars', n)}</span>
            </label>
          ))}
        </div>
      </fieldset>
      <div class="field" hidden={!score}>
        <label for="parley-comment">{language.t('rateComment')}<span class="opt"> ({language.t('optional')})</span></label>
        <textarea ref={comment} id="parley-comment" rows={2} maxLength={1000} dir="auto" defaultValue={own?.comment} />
      </div>
      {problem && <p class="error" role="alert">{problem}</p>}
      <div class="pair">
        <button type="button" class="secondary" onClick={() => (own ? setOpen(false) : session.support.skip(chat.chatId))}>{language.t(own ? 'cancel' : 'rateSkip')}</button>
        {score > 0 && <button type="submit" class="primary" aria-disabled={busy}>{language.t('send')}</button>}
      </div>
    </form>
  );
}

function Star({ on }: { on: boolean }) {
  return (
    <svg viewBox="0 0 24 24" class={on ? 'icon full' : 'icon'} aria-hidden="true" focusable="false">
      <path d="m12 3.6 2.6 5.3 5.8.8-4.2 4.1 1 5.8-5.2-2.7-5.2 2.7 1-5.8-4.2-4.1 5.8-.8L12 3.6Z" />
    </svg>
  );
}

/** In the composer's place while the agents are away: a message, and where they may answer. */
export function OfflineForm() {
  const { session, state, language, announce } = useScreen();
  const form = useRef<HTMLFormElement>();
  const [busy, setBusy] = useState(false);
  const [wrong, setWrong] = useState<Record<string, string>>({});
  const [problem, setProblem] = useState('');
  const given = session.storage.session().u?.email;
  const opens = Date.parse(state.chat?.opensAt ?? '');
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    if (busy) return;
    const value = (name: string) => (form.current!.elements.namedItem(name) as HTMLInputElement).value.trim();
    const missing = ['message', 'email'].filter((name) => !value(name));
    setProblem('');
    setWrong(Object.fromEntries(missing.map((name) => [name, language.t('fieldRequired')])));
    if (missing.length) return (form.current!.elements.namedItem(missing[0]!) as HTMLElement).focus();
    setBusy(true);
    try {
      await session.support.leave(value('message'), value('email'));
      announce(language.t('offlineSent'));
    } catch (err) {
      const fields = err instanceof ApiError ? err.details.map((d) => d.field) : [];
      if (fields.includes('email')) {
        setWrong({ email: language.t('emailInvalid') });
        (form.current!.elements.namedItem('email') as HTMLElement).focus();
      } else setProblem(err instanceof ApiError && err.details.length ? err.message : language.t('unavailable'));
    }
    setBusy(false);
  };
  const field = (name: string) => ({
    id: `parley-left-${name}`, name, required: true, 'aria-required': true, 'aria-invalid': wrong[name] ? ('true' as const) : undefined,
    'aria-describedby': wrong[name] ? `parley-left-${name}-error` : undefined,
  });
  const error = (name: string) => wrong[name] && <p class="error" id={`parley-left-${name}-error`}>{wrong[name]}</p>;
  return (
    <form ref={form} class="rate" noValidate onSubmit={submit} aria-labelledby="parley-left-title">
      <h3 id="parley-left-title">{language.t('leaveMessage')}</h3>
      <p class="note">{opens ? language.t('awayUntil', { at: language.full(opens) }) : language.t('away')}</p>
      <div class="field">
        <label for="parley-left-message">{language.t('messageLabel')}</label>
        <textarea {...field('message')} rows={3} maxLength={4096} dir="auto" />
        {error('message')}
      </div>
      <div class="field">
        <label for="parley-left-email">{language.t('email')}</label>
        <input {...field('email')} type="email" autocomplete="email" inputMode="email" dir="ltr" maxLength={254} defaultValue={text(given)} />
        {error('email')}
      </div>
      {problem && <p class="error" role="alert">{problem}</p>}
      <button type="submit" class="primary" aria-disabled={busy}><Icon name="send" flip /> {language.t('send')}</button>
    </form>
  );
}
