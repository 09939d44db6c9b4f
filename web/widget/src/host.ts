/** What the loader and the chat know of each other. Types only: neither pulls the other into its file. */

export type Theme = 'auto' | 'light' | 'dark';

export interface Identity {
  userId?: string;
  email?: string;
  phone?: string;
  firstName?: string;
  lastName?: string;
  /** HMAC-SHA256 of userId, email or phone, made by the site's server. */
  userHash?: string;
  /** A JWT that the company has signed, made by the site's server. */
  identityToken?: string;
  [other: string]: unknown;
}

export type EventName = 'open' | 'close' | 'message' | 'unread' | 'registered' | 'error' | 'state';

/** The part of the widget that is there from the first moment, as the chat sees it. */
export interface Host {
  readonly base: string;
  readonly appId: string;
  readonly element: HTMLElement;
  readonly root: ShadowRoot;
  readonly launcher: HTMLButtonElement;
  readonly mediaOrigins: string[];
  /**
   * Whether a WebSocket may be tried. A page whose tag has a nonce has a policy, and one that names the widget's address without its
   * wss: form would refuse and report it: there the socket stays with HTTP unless the tag says otherwise.
   */
  readonly websocket: boolean;
  language: string;
  theme: Theme;
  identity?: Identity | undefined;
  /** The answer of GET /settings, asked for beside the chat; for the first use. */
  settingsAnswer?: Promise<Response | undefined> | undefined;
  emit(event: EventName, detail?: unknown): void;
  /** Requests a module that is imported next. One whose bytes are not those of the integrity does not run. */
  preload(file: string, integrity: string): HTMLLinkElement;
  /** The number on the launcher. */
  badge(unread: number): void;
  /** The launcher's colours. */
  paint(back: string | undefined, front: string | undefined): void;
  /** What the launcher says while the chat is open. */
  closeLabel?: string;
  /** Brings the launcher's label and state up to date. */
  dress(): void;
  /** Under which the session is stored; what else is stored begins with it. */
  readonly key: string;
}

/** The chat, as the loader drives it. */
export interface Chat {
  open(): void;
  close(): void;
  readonly isOpen: boolean;
  identify(identity: Identity): void;
  logout(): void;
  forget(): void;
  setLanguage(): void;
  setTheme(): void;
  reattached(): void;
  destroy(): void;
}

/** What a session leaves in localStorage under the host's key, so far as the loader reads it. */
export interface Stored {
  /** The visitor's token. */
  t?: string;
  /** Unread messages. */
  n?: number;
  /** Something is not done: a message unsent, or an answer that is waited for. */
  w?: boolean;
  /** The launcher's colours. */
  c?: [back: string, front: string];
}
