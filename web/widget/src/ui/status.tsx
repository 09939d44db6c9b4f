import { Icon } from '@parley/shared/render/icon.js';
import { useScreen } from './context.js';

/** Connection problems and rate limiting, or a hint that storage is blocked. */
export function Banner() {
  const { state, language, session } = useScreen();
  const c = state.connection;
  const key = state.slow ? 'slowDown' : c === 'offline' || c === 'unavailable' || c === 'reconnecting' ? c : undefined;
  if (!key && !session.storage.blocked) return null;
  return <p class={key ? 'banner' : 'banner calm'}>{language.t(key ?? 'storageBlocked')}</p>;
}

/** Stands in for the messages until the settings are loaded. */
export function Loading() {
  const { language } = useScreen();
  return (
    <div class="scroll blank">
      <p class="sr">{language.t('loading')}</p>
      <div class="ghost" />
      <div class="ghost mine" />
      <div class="ghost" />
    </div>
  );
}

/** The settings could not be loaded, or the site may not use the widget. */
export function Failed() {
  const { state, session, language } = useScreen();
  const refused = state.phase === 'refused';
  return (
    <div class="scroll blank center">
      <Icon name="alert" />
      <p>{language.t(refused ? 'notAllowed' : 'loadFailed')}</p>
      {!refused && (
        <button type="button" class="primary" onClick={() => session.retryLoading()}>
          {language.t('tryAgain')}
        </button>
      )}
    </div>
  );
}
