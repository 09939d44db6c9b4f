import type { StreamedMessage } from '@parley/shared/parts.js';
import { Words, type Render } from '@parley/shared/render/content.js';
import type { Language } from '../i18n.js';
import type { Session } from '../state/session.js';
import { Avatar } from './avatar.js';

/** A message that a bot is streaming. It is announced only when it is complete. */
export function StreamedRow({
  message: m,
  session,
  language,
  render,
}: {
  message: StreamedMessage;
  session: Session;
  language: Language;
  render: Render;
}) {
  return (
    <div class="page" data-page="writing">
      <article
        class={`row theirs first last writing${m.done ? ' done' : ''}`}
        data-key={m.messageId}
        tabIndex={-1}
        aria-busy={!m.done}
        aria-label={m.nameOfSender}
      >
        <Avatar name={m.nameOfSender} class="small" />
        <div class="body">
          <p class="author" dir="auto">
            {m.nameOfSender}
          </p>
          <div class="bubble">
            <Words
              text={m.text}
              markdown={m.format === 'markdown'}
              unfinished={!m.done}
              render={render}
              reachable={false}
            />
          </div>
          <p class="meta">
            {!m.done && (
              <button type="button" class="textbutton" onClick={() => session.streaming.stop()}>
                {language.t('stopWriting')}
              </button>
            )}
          </p>
        </div>
      </article>
    </div>
  );
}
