export type Theme = 'auto' | 'light' | 'dark';

export interface Identity {
  userId?: string;
  email?: string;
  /** 11 to 12 digits. */
  phone?: string;
  firstName?: string;
  lastName?: string;
  /** HMAC-SHA256 of userId, email or phone, in hexadecimal, made by your server. */
  userHash?: string;
  /** A JWT that your company has signed, made by your server. */
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
  | 'loading' | 'failed' | 'refused' | 'form' | 'idle' | 'connecting' | 'online' | 'reconnecting' | 'offline' | 'unavailable';

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
  /** Address of the Widget API, such as https://chat.example.com */
  baseUrl: string;
  appId: string;
  /** Of the page's Content-Security-Policy. */
  nonce?: string;
  lang?: string;
  theme?: Theme;
  position?: 'left' | 'right';
  /** "none": the page opens the chat itself. */
  launcher?: 'none';
  /** Colour of the launcher before the settings are known, such as #0f766e. */
  color?: string;
  /** Further origins that pictures, sound and video may come from. */
  mediaOrigins?: string[];
  websocket?: 'on' | 'off';
}

/** Loads the widget; calls wait until it is there. On a server it does nothing. */
export function load(options: Options): Parley;

declare global {
  interface Window {
    Parley?: Parley | unknown[];
  }
}
