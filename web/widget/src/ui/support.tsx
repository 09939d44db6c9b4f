import { useState } from '@parley/shared/render/hooks.js';
import type { ChatState } from '@parley/shared/api.js';
import { text, type Message } from '@parley/shared/message.js';
import type { Language } from '../i18n.js';
import { noticeKind } from '../state/support.js';
import { useScreen } from './context.js';

/** Localised text of a system notice; empty for any other message and for an unknown kind of notice. */
export function noticeText(m: Message, language: Language, now: number): string {
  switch (noticeKind(m)) {
    case 'handover': {
      const opens = Date.parse(text(m.data.opensAt));
      if (!m.data.away) return language.t('handover');
      return opens ? language.t('awayUntil', { at: language.when(opens, now) }) : language.t('away');
    }
    case 'offline':
      return language.t('offlineSent');
    case 'closed':
      return language.t('chatClosed');
  }
  return '';
}

/**
 * Who answers now: the bot is online, the agents are online or away. Who has an agent has one after hours too. Empty if
 * that is unknown, or nobody does because the chat has ended.
 */
export function answering(chat: ChatState | undefined): '' | 'online' | 'agentsOnline' | 'away' {
  if (!chat || chat.status === 'closed') return '';
  if (chat.control !== 'agent') return 'online';
  return chat.online && (chat.available || !chat.waiting) ? 'agentsOnline' : 'away';
}

/**
 * Whether to show the offline form: the chat waits for agents, none is available, and it was not handed over by that
 * form.
 */
export const isAway = (chat: ChatState | undefined): boolean =>
  !!chat?.waiting && !chat.available && chat.handoverBy !== 'offline_form';

/** The bar above the composer: the rating, or the button that requests an agent. */
export function SupportBar() {
  const { state, session, language, announce, extras } = useScreen();
  const [busy, setBusy] = useState(false);
  const { chat } = state;
  if (chat?.rateableUntil && state.skipped !== chat.chatId) {
    const Rating = extras.getOrLoad()?.Rating;
    return Rating && <Rating key={chat.chatId} chat={chat} />;
  }
  if (!chat?.handoverOffered) return null;
  const requestAgent = async () => {
    if (busy) return;
    setBusy(true);
    await session.support.handOver().catch(() => announce(language.t('unavailable')));
    setBusy(false);
  };
  return (
    <div class="ask">
      <button type="button" class="textbutton" aria-disabled={busy} onClick={() => void requestAgent()}>
        {language.t('talkToPerson')}
      </button>
    </div>
  );
}
