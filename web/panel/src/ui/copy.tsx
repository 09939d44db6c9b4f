import { useEffect, useRef, useState } from 'preact/hooks';
import { strings } from '../strings.js';
import { Button } from './button.js';

/** Copies a text to the clipboard. When the browser refuses, it selects the text so that the user can copy it with the keyboard. */
export function CopyButton({
  text,
  label = strings.copy,
  small = true,
}: {
  text: string;
  label?: string;
  small?: boolean;
}) {
  const [done, setDone] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout>>();
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = Object.assign(document.createElement('textarea'), { value: text, className: 'sr' });
      (document.querySelector('dialog[open]') ?? document.body).append(area);
      area.select();
      document.execCommand('copy');
      area.remove();
    }
    setDone(true);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setDone(false), 2000);
  };
  return (
    <>
      <Button small={small} icon={done ? 'check' : 'copy'} class="copy" onClick={() => void copy()}>
        {done ? strings.copied : label}
      </Button>
      <span class="sr" role="status">
        {done ? strings.copied : ''}
      </span>
    </>
  );
}

/** A text with a copy button: a command, a snippet or a secret. */
export function Code({ text, label, copyLabel }: { text: string; label: string; copyLabel?: string }) {
  return (
    <div class="code">
      <pre tabIndex={0} role="region" aria-label={label}>
        <code>{text}</code>
      </pre>
      <CopyButton text={text} {...(copyLabel && { label: copyLabel })} />
    </div>
  );
}
