export type Theme = 'auto' | 'light' | 'dark';

export interface Identity {
  userId?: string;
  email?: string;
  /** 11 or 12 digits. */
  phone?: string;
  firstName?: string;
  lastName?: string;
  /** HMAC-SHA256 of userId, email or phone, hex-encoded. Computed by your server. */
  userHash?: string;
  /** A JWT signed by your server. */
  identityToken?: string;
  [other: string]: unknown;
}

export interface Message {
  id: string;
  createdAt: string;
  type: string;
  data: Record<string, unknown>;
  nameOfSender: string;
  isFromSupport: boolean;
  chatId?: string;
}

export type State =
  | 'loading'
  | 'failed'
  | 'refused'
  | 'form'
  | 'idle'
  | 'connecting'
  | 'online'
  | 'reconnecting'
  | 'offline'
  | 'unavailable';

export interface Events {
  open: undefined;
  close: undefined;
  message: Message;
  unread: number;
  registered: { chatUserId: string };
  error: { code: string; status?: number; message: string };
  state: State;
}

export interface Parley {
  open(): void;
  close(): void;
  toggle(): void;
  show(): void;
  hide(): void;
  identify(identity: Identity): void;
  logout(): void;
  forget(): void;
  on<E extends keyof Events>(event: E, listener: (detail: Events[E]) => void): void;
  off<E extends keyof Events>(event: E, listener?: (detail: Events[E]) => void): void;
  setLanguage(language: string): void;
  setTheme(theme: Theme): void;
  ready(): Promise<Parley>;
  destroy(): void;
}

export interface Options {
  /** Base URL of the Widget API, such as https://chat.example.com */
  baseUrl: string;
  appId: string;
  /** Nonce from the page's Content-Security-Policy. */
  nonce?: string;
  lang?: string;
  theme?: Theme;
  position?: 'left' | 'right';
  /** "none" hides the launcher; the page opens the chat itself. */
  launcher?: 'none';
  /** Colour of the launcher until the settings are loaded, such as #0f766e. */
  color?: string;
  /** Additional origins from which pictures, audio and video may be loaded. */
  mediaOrigins?: string[];
  websocket?: 'on' | 'off';
}

/** Loads the widget. Calls are queued until it is ready. Does nothing during server-side rendering. */
export function load(options: Options): Parley;

declare global {
  interface Window {
    Parley?: Parley | unknown[];
  }
}
