import { useEffect, useRef } from '@parley/shared/render/hooks.js';
import { Icon } from '@parley/shared/render/icon.js';
import { useScreen } from './context.js';

/** Picture preview that covers the panel. */
export function Preview({ url, name, close }: { url: string; name: string; close(): void }) {
  const { language } = useScreen();
  const button = useRef<HTMLButtonElement>();
  useEffect(() => button.current!.focus(), []);
  const onKeyDown = (e: KeyboardEvent) => {
    if (e.key === 'Escape') {
      e.stopPropagation();
      close();
    }
  };
  return (
    <div
      class="preview"
      role="dialog"
      aria-modal="true"
      aria-label={name}
      onKeyDown={onKeyDown}
      onClick={(e) => e.target === e.currentTarget && close()}
    >
      <div class="previewbar">
        <span class="filename" dir="auto">
          {name}
        </span>
        <a
          class="round"
          href={url}
          target="_blank"
          rel="noopener noreferrer"
          download
          aria-label={language.t('download', { name })}
        >
          <Icon name="download" />
        </a>
        <button ref={button} type="button" class="round" aria-label={language.t('closePreview')} onClick={close}>
          <Icon name="close" />
        </button>
      </div>
      <img src={url} alt={name} />
    </div>
  );
}
