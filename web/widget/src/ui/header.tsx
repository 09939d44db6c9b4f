import { useEffect, useRef, useState } from '@parley/shared/render/hooks.js';
import { Icon } from '@parley/shared/render/icon.js';
import { Avatar } from './avatar.js';
import { useScreen } from './context.js';
import { answering } from './support.js';

/** Who answers, the menu, and the button that closes the chat. */
export function Header() {
  const { state, language, session, host, close } = useScreen();
  const header = useRef<HTMLDivElement>();
  const [menu, setMenu] = useState(false);
  const [confirming, setConfirming] = useState(false);
  const button = useRef<HTMLButtonElement>();
  const { settings } = state;
  const who = state.phase === 'chat' && state.connection === 'online' ? answering(state.chat) : '';
  const closeMenu = () => {
    setMenu(false);
    setConfirming(false);
  };
  const closeAndFocusButton = () => {
    closeMenu();
    button.current?.focus();
  };
  // Close the menu on a pointer press or focus outside the header.
  useEffect(() => {
    if (!menu) return undefined;
    const onOutside = (e: Event) => header.current!.contains(e.target as Node) || closeMenu();
    const events = ['pointerdown', 'focusin'];
    events.forEach((type) => host.root.addEventListener(type, onOutside));
    return () => events.forEach((type) => host.root.removeEventListener(type, onOutside));
  }, [menu]);
  useEffect(() => {
    if (confirming) header.current!.querySelector<HTMLElement>('.secondary')!.focus();
  }, [confirming]);
  const onKeyDown = (e: KeyboardEvent) => {
    if (e.key !== 'Escape' || !menu) return;
    e.stopPropagation();
    closeAndFocusButton();
  };
  return (
    <div ref={header} class="header" onKeyDown={onKeyDown}>
      <Avatar name={settings?.botName ?? settings?.name ?? ''} />
      <div class="names">
        <h2 class="title" tabIndex={-1}>
          {settings?.name}
        </h2>
        <p class="sub">
          {(!who || who === 'online') && settings?.botName}
          {who && (
            <>
              {who !== 'away' && <span class="dot" />} {language.t(who)}
            </>
          )}
        </p>
      </div>
      <button
        ref={button}
        type="button"
        class="round"
        aria-label={language.t('menu')}
        aria-expanded={menu}
        onClick={() => (menu ? closeAndFocusButton() : setMenu(true))}
      >
        <Icon name="more" />
      </button>
      <button type="button" class="round" aria-label={language.t('close')} onClick={close}>
        <Icon name="close" />
      </button>
      {menu && (
        <div class="menu" role="group" aria-label={language.t('menu')}>
          {confirming ? (
            <>
              <p>{language.t('forgetConfirm')}</p>
              <div class="pair">
                <button type="button" class="secondary" onClick={closeAndFocusButton}>
                  {language.t('cancel')}
                </button>
                <button
                  type="button"
                  class="danger"
                  onClick={() => {
                    closeAndFocusButton();
                    session.end();
                  }}
                >
                  {language.t('forgetYes')}
                </button>
              </div>
            </>
          ) : (
            <>
              <button
                type="button"
                class="item"
                aria-pressed={state.sound}
                onClick={() => session.setSound(!state.sound)}
              >
                <Icon name={state.sound ? 'bell' : 'mute'} />
                {language.t(state.sound ? 'soundOff' : 'soundOn')}
              </button>
              {session.registered && (
                <button type="button" class="item" onClick={() => setConfirming(true)}>
                  <Icon name="trash" />
                  {language.t('forget')}
                </button>
              )}
            </>
          )}
        </div>
      )}
    </div>
  );
}
