import { Store, useStore } from '../lib/store.js';
import { strings } from '../strings.js';
import { IconButton } from './button.js';
import { Glyph } from './icon.js';

interface Toast { id: number; kind: 'good' | 'bad'; text: string }

const toasts = new Store<Toast[]>([]);
let next = 1;

/** Shows a short notification of success or failure. Errors stay until they are dismissed. */
export function toast(text: string, kind: Toast['kind'] = 'good'): void {
  const id = next++;
  toasts.update((all) => [...all.slice(-2), { id, kind, text }]);
  if (kind === 'good') setTimeout(() => dismiss(id), 5000);
}

const dismiss = (id: number) => toasts.update((all) => all.filter((t) => t.id !== id));

export function Toasts() {
  const all = useStore(toasts);
  return (
    <div class="toasts" role="status" aria-live="polite">
      {all.map((t) => (
        <div key={t.id} class={`toast ${t.kind}`}>
          <Glyph name={t.kind === 'good' ? 'check' : 'alert'} />
          <span>{t.text}</span>
          <IconButton small icon="close" label={strings.dismiss} onClick={() => dismiss(t.id)} />
        </div>
      ))}
    </div>
  );
}
