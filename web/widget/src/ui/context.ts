import { type ComponentType, createContext } from 'preact';
import type { ChatState } from '@parley/shared/api.js';
import type { Message } from '@parley/shared/message.js';
import type { TextProps } from '@parley/shared/render/content.js';
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

/** The component and the function of ../markdown.ts. */
export interface MarkdownModule {
  Markdown: ComponentType<TextProps>;
  withoutMarks(m: Message): Message;
}

/** A module that is loaded on first use (./ondemand.ts). */
interface Lazy<Module> {
  readonly loaded: Module | undefined;
  /** Returns the module if loaded; otherwise starts loading, after which the components render again. */
  getOrLoad(): Module | undefined;
  load(): Promise<Module>;
}

/** The context of all UI components. */
export interface Screen {
  host: Host;
  session: Session;
  state: State;
  language: Language;
  extras: Lazy<ExtrasModule>;
  markdown: Lazy<MarkdownModule>;
  /** Announces a text in the polite live region. */
  announce(text: string): void;
  close(): void;
}

export const ScreenContext = createContext<Screen>(undefined as unknown as Screen);
export const useScreen = (): Screen => useContext(ScreenContext);
