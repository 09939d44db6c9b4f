import { type ComponentType, createContext } from 'preact';
import type { ChatState } from '@parley/shared/api.js';
import { useContext } from '@parley/shared/render/hooks.js';
import type { Language } from '../i18n.js';
import type { Host } from '../host.js';
import type { Session } from '../state/session.js';
import type { State } from '../state/reducer.js';

/** The components and functions of ../extras.ts. Their names are not mangled: they are exports of another module. */
export interface ExtrasModule {
  OfflineForm: ComponentType<{ draft: { current: string | null } }>;
  Preview: ComponentType<{ url: string; name: string; close(): void }>;
  Rating: ComponentType<{ chat: ChatState }>;
  chime(key: string, id: string): void;
}

/** The context of all UI components. */
export interface Screen {
  host: Host;
  session: Session;
  state: State;
  language: Language;
  /** Loads the extras (./extras.ts). */
  extras: {
    /** Returns the extras if loaded; otherwise starts loading, after which the components render again. */
    getOrLoad(): ExtrasModule | undefined;
    load(): Promise<ExtrasModule>;
  };
  /** Announces a text in the polite live region. */
  announce(text: string): void;
  close(): void;
}

export const ScreenContext = createContext<Screen>(undefined as unknown as Screen);
export const useScreen = (): Screen => useContext(ScreenContext);
