import { Component } from 'preact';
import { nameOf } from '@parley/shared/render/content.js';
import { Icon } from '@parley/shared/render/icon.js';
import { BitmapCanvas } from '@parley/shared/render/picture.js';
import type { Language } from '../i18n.js';
import type { OutboxItem } from '../state/outbox.js';
import type { Session } from '../state/session.js';

interface PendingMessageProps {
  item: OutboxItem;
  last: boolean;
  share: number | undefined;
  session: Session;
  language: Language;
  offline: boolean;
}

/** A message in the outbox. */
export function PendingMessage({ item, last, share = 0, session, language, offline }: PendingMessageProps) {
  const file = item.file;
  const name = file ? file.name : String(item.body?.data.text ?? '');
  const word = language.t(item.failed ? 'failed' : offline ? 'waiting' : 'sending');
  return (
    <article
      class={`row mine pending${item.failed ? ' bad' : ''}`}
      data-key={item.key}
      tabIndex={-1}
      aria-label={`${language.t('you')}, ${word}`}
    >
      <div class="body">
        <div class="bubble">
          {file ? (
            <PendingFile item={item} share={share} session={session} language={language} />
          ) : (
            <p class="words" dir="auto">
              {name}
            </p>
          )}
        </div>
        {item.failed ? (
          <p class="meta bad">
            <Icon name="alert" /> {word}
            <button type="button" class="textbutton" onClick={() => session.sending.retry(item.key)}>
              {language.t('retry')}
            </button>
            <button type="button" class="textbutton" onClick={() => session.sending.discard(item.key)}>
              {language.t('discard')}
            </button>
          </p>
        ) : (
          last && (
            <p class="meta">
              <span class="mark">
                <Icon name="clock" />
                {word}
              </span>
            </p>
          )
        )}
      </div>
    </article>
  );
}

/** A file in the outbox, with its progress. A picture is shown from the browser's own copy. */
class PendingFile extends Component<
  { item: OutboxItem; share: number; session: Session; language: Language },
  { blob?: Blob }
> {
  #unmounted = false;

  override componentDidMount() {
    if (/^image\/(?!svg)/.test(this.props.item.file!.mime)) {
      void this.props.session.storage
        .blob(this.props.item.key)
        .then((blob) => !this.#unmounted && blob && this.setState({ blob }));
    }
  }

  override componentWillUnmount() {
    this.#unmounted = true;
  }

  override render() {
    const { item, share, session, language } = this.props;
    const file = item.file!;
    const name = nameOf({ fileName: file.name }, language.t('file'));
    const percent = language.percent(share);
    return (
      <>
        {this.state.blob && <BitmapCanvas source={this.state.blob} alt="" class="shot" />}
        <div class="filelink">
          <span class="disc">
            <Icon name="file" />
          </span>
          <span class="filetext">
            <span class="filename" dir="auto">
              {name}
            </span>
            <span class="foot">{language.bytes(file.size)}</span>
          </span>
          {!item.failed && (
            <button
              type="button"
              class="round"
              aria-label={language.t('cancelUpload', { name })}
              onClick={() => session.sending.discard(item.key)}
            >
              <Icon name="close" />
            </button>
          )}
        </div>
        {!item.failed && <progress max={1} value={share} aria-label={language.t('uploading', { name, percent })} />}
        {file.caption && (
          <p class="words" dir="auto">
            {file.caption}
          </p>
        )}
      </>
    );
  }
}
