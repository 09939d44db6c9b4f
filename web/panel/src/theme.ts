import { Store } from './lib/store.js';

export type Theme = 'auto' | 'light' | 'dark';

const KEY = 'parley.panel.theme';

export const theme = new Store<Theme>(read());

function read(): Theme {
  try {
    const t = localStorage.getItem(KEY);
    return t === 'light' || t === 'dark' ? t : 'auto';
  } catch {
    return 'auto';
  }
}

const system = globalThis.matchMedia?.('(prefers-color-scheme: dark)');

const show = () => {
  document.documentElement.dataset.theme =
    theme.value === 'dark' || (theme.value === 'auto' && system?.matches) ? 'dark' : 'light';
};
system?.addEventListener('change', show);

export function applyTheme(t: Theme): void {
  theme.set(t);
  show();
  try {
    if (t === 'auto') localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, t);
  } catch {
    // storage is blocked: the choice lasts until the page is closed
  }
}
