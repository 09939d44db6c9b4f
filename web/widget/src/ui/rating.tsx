import { useRef, useState } from '@parley/shared/render/hooks.js';
import { ApiError, type ChatState } from '@parley/shared/api.js';
import { useScreen } from './context.js';

const STARS = [1, 2, 3, 4, 5];

/** Chat rating: one to five stars and a comment. A sent rating can be changed until the rating period ends. */
export function Rating({ chat }: { chat: ChatState }) {
  const { session, language, announce } = useScreen();
  const saved = chat.rating;
  const [open, setOpen] = useState(!saved);
  const [score, setScore] = useState(saved?.score ?? 0);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState('');
  const comment = useRef<HTMLTextAreaElement>();
  if (!open) {
    return (
      <div class="ask" role="status">
        <span class="stars small" role="img" aria-label={language.n('stars', score)}>
          {STARS.map((n) => (
            <Star key={n} on={n <= score} />
          ))}
        </span>{' '}
        {language.t('rateThanks')}{' '}
        <button type="button" class="textbutton" onClick={() => setOpen(true)}>
          {language.t('rateChange')}
        </button>
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
              <input
                type="radio"
                name="parley-score"
                class="sr"
                value={n}
                checked={n === score}
                onChange={() => setScore(n)}
              />
              <Star on={n <= score} />
              <span class="sr">{language.n('stars', n)}</span>
            </label>
          ))}
        </div>
      </fieldset>
      <div class="field" hidden={!score}>
        <label for="parley-comment">
          {language.t('rateComment')}
          <span class="opt"> ({language.t('optional')})</span>
        </label>
        <textarea
          ref={comment}
          id="parley-comment"
          rows={2}
          maxLength={1000}
          dir="auto"
          defaultValue={saved?.comment}
        />
      </div>
      {problem && (
        <p class="error" role="alert">
          {problem}
        </p>
      )}
      <div class="pair">
        <button
          type="button"
          class="secondary"
          onClick={() => (saved ? setOpen(false) : session.support.skipRating(chat.chatId))}
        >
          {language.t(saved ? 'cancel' : 'rateSkip')}
        </button>
        {score > 0 && (
          <button type="submit" class="primary" aria-disabled={busy}>
            {language.t('send')}
          </button>
        )}
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
