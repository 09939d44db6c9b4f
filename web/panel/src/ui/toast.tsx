import { Store, useStore } from '../lib/store.js';
import { strings } from '../strings.js';
import { IconButton } from './button.js';
import { Glyph } from './icon.js';

/** What a toast offers to do. */
export interface ToastAction {
  label: string;
  act(): void;
}

interface Toast {
  id: number;
  kind: 'good' | 'bad';
  text: string;
  action?: ToastAction | undefined;
}

const toasts = new Store<Toast[]>([]);
let next = 1;

/** Shows a short notification of success or failure. Errors stay until they are dismissed. */
export function toast(text: string, kind: Toast['kind'] = 'good', action?: ToastAction): void {
  const id = next++;
  toasts.update((all) => [...all.slice(-2), { id, kind, text, action }]);
  if (kind === 'good') setTimeout(() => dismiss(id), action ? 6000 : 5000);
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
          {t.action && (
            <button
              type="button"
              class="textbutton"
              onClick={() => {
                dismiss(t.id);
                t.action!.act();
              }}
            >
              {t.action.label}
            </button>
          )}
          <IconButton small icon="close" label={strings.dismiss} onClick={() => dismiss(t.id)} />
        </div>
      ))}
    </div>
  );
}
