import { useEffect, useRef } from 'preact/hooks';
import { strings } from '../strings.js';
import { IconButton } from '../ui/button.js';
import { Glyph } from '../ui/icon.js';

const s = strings.inbox;

/** A picture of a message in full size. */
export function Lightbox({ url, name, close }: { url: string; name: string; close(): void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const from = document.activeElement;
    dialog.current!.showModal();
    return () => from instanceof HTMLElement && from.focus();
  }, []);
  return (
    <dialog
      ref={dialog}
      class="lightbox"
      aria-label={name}
      onCancel={(e) => {
        e.preventDefault();
        close();
      }}
      onClick={(e) => e.target === e.currentTarget && close()}
    >
      <header>
        <span dir="auto">{name}</span>
        <a
          class="iconbtn"
          href={url}
          target="_blank"
          rel="noopener noreferrer"
          aria-label={s.openOriginal}
          title={s.openOriginal}
        >
          <Glyph name="link" />
        </a>
        <IconButton icon="close" label={strings.close} onClick={close} />
      </header>
      <img src={url} alt={name} />
    </dialog>
  );
}
