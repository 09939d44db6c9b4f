import type { Message } from '../api/types.js';
import { Store } from '../lib/store.js';
import { strings } from '../strings.js';
import { lineOf } from './line.js';

export interface Alerts {
  sound: boolean;
  desktop: boolean;
  keys: boolean;
}

const KEY = 'parley.panel.alerts';

function read(): Alerts {
  try {
    return {
      sound: true,
      desktop: false,
      keys: true,
      ...(JSON.parse(localStorage.getItem(KEY) ?? '{}') as Partial<Alerts>),
    };
  } catch {
    return { sound: true, desktop: false, keys: true };
  }
}

/** The notification settings of an agent, stored in this browser. */
export const alerts = new Store<Alerts>(read());

export function setAlerts(change: Partial<Alerts>): void {
  alerts.update((a) => ({ ...a, ...change }));
  try {
    localStorage.setItem(KEY, JSON.stringify(alerts.value));
  } catch {
    // storage is blocked: the setting lasts until the page is closed
  }
}

export const canNotify = (): boolean => 'Notification' in globalThis;

/** Requests permission for desktop notifications. Call it from a user gesture, as browsers require. */
export async function requestDesktop(): Promise<boolean> {
  if (!canNotify()) return false;
  const granted = Notification.permission === 'granted' || (await Notification.requestPermission()) === 'granted';
  setAlerts({ desktop: granted });
  return granted;
}

let lastSound = 0;

/** Plays two soft synthesized tones. A lock lets only one of several tabs play. */
export function chime(): void {
  if (!alerts.value.sound || Date.now() - lastSound < 1500) return;
  if (navigator.userActivation && !navigator.userActivation.hasBeenActive) return; // browsers block sound before the first user gesture
  lastSound = Date.now();
  const play = async () => {
    const audio = new AudioContext();
    const gain = audio.createGain();
    gain.connect(audio.destination);
    const now = audio.currentTime;
    gain.gain.setValueAtTime(0.0001, now);
    gain.gain.exponentialRampToValueAtTime(0.07, now + 0.02);
    gain.gain.exponentialRampToValueAtTime(0.0001, now + 0.45);
    for (const [i, frequency] of [587, 880].entries()) {
      const tone = new OscillatorNode(audio, { frequency });
      tone.connect(gain);
      tone.start(now + i * 0.1);
      tone.stop(now + 0.45);
    }
    await new Promise((done) => setTimeout(done, 600));
    await audio.close();
  };
  if (!navigator.locks) void play();
  else void navigator.locks.request('parley.panel.sound', { ifAvailable: true }, (lock) => (lock ? play() : undefined));
}

export const notify = (name: string, message: Message, chatId: string): void =>
  notifyOf(strings.inbox.notification(name), lineOf(message), chatId);

/** Shows a desktop notification that opens a chat, if they are enabled and the page has no focus. */
export function notifyOf(title: string, body: string, chatId: string): void {
  if (!alerts.value.desktop || !canNotify() || Notification.permission !== 'granted' || document.hasFocus()) return;
  const n = new Notification(title, { body, tag: chatId });
  n.onclick = () => {
    window.focus();
    location.hash = `#/inbox/${chatId}`;
    n.close();
  };
}
