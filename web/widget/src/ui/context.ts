import { createContext } from 'preact';
import { useContext } from '@parley/shared/render/hooks.js';
import type { Language } from '../i18n.js';
import type { Host } from '../host.js';
import type { Session } from '../state/session.js';
import type { State } from '../state/reducer.js';
import type { Extras } from './extras.js';

/** The context of all UI components. */
export interface Screen {
  host: Host;
  session: Session;
  state: State;
  language: Language;
  extras: Extras;
  /** Announces a text in the polite live region. */
  announce(text: string): void;
  close(): void;
}

export const ScreenContext = createContext<Screen>(undefined as unknown as Screen);
export const useScreen = (): Screen => useContext(ScreenContext);
