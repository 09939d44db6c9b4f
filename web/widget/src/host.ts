/** The interface between loader and chat. Types only, so that neither bundle includes the other. */

export type Theme = 'auto' | 'light' | 'dark';

export interface Identity {
  userId?: string;
  email?: string;
  phone?: string;
  firstName?: string;
  lastName?: string;
  /** HMAC-SHA256 of userId, email or phone, hex-encoded. Computed by the site's server. */
  userHash?: string;
  /** A JWT signed by the site's server. */
  identityToken?: string;
  [other: string]: unknown;
}

export type EventName = 'open' | 'close' | 'message' | 'unread' | 'registered' | 'error' | 'state';

/** The loader as seen by the chat. */
export interface Host {
  readonly base: string;
  readonly appId: string;
  readonly element: HTMLElement;
  readonly root: ShadowRoot;
  readonly launcher: HTMLButtonElement;
  readonly mediaOrigins: string[];
  /**
   * Whether to try WebSocket. A script tag with a nonce implies a CSP. If its connect-src lacks the wss: origin, the
   * browser blocks and reports the attempt, so such pages use HTTP long polling unless data-websocket enables
   * WebSocket.
   */
  readonly websocket: boolean;
  language: string;
  theme: Theme;
  identity?: Identity | undefined;
  /** Response of GET /settings, requested in parallel with the chat module. Consumed by the first use. */
  settingsAnswer?: Promise<Response | undefined> | undefined;
  emit(event: EventName, detail?: unknown): void;
  /** Preloads a module before its import. A module that does not match the integrity hash does not run. */
  preload(file: string, integrity: string): HTMLLinkElement;
  /** Sets the unread count on the launcher. */
  badge(unread: number): void;
  /** Sets the launcher's colours. */
  paint(back: string | undefined, front: string | undefined): void;
  /** Accessible name of the launcher while the chat is open. */
  closeLabel?: string;
  /** Updates the launcher's badge, ARIA attributes, direction and position. */
  refresh(): void;
  /** Storage key of the session record, and prefix of all other keys. */
  readonly key: string;
}

/** The chat as seen by the loader. */
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

/** The members of the session record in localStorage that the loader reads. */
export interface Stored {
  /** The visitor's access token. */
  token?: string;
  unreadCount?: number;
  /** Work is pending: an unsent message or an awaited reply. */
  pending?: boolean;
  /** The launcher's colours. */
  colours?: [back: string, front: string];
}
