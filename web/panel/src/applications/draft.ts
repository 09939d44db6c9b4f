import { contrast, parseHex } from '@parley/shared/colour.js';
import { list, text, type Data } from '@parley/shared/message.js';
import type { Application, ApplicationDraft } from '../api/types.js';

export const COLOURS = [
  { key: 'primaryBackgroundColor', otherwise: '#0f766e' },
  { key: 'primaryTextColor', otherwise: '#ffffff' },
  { key: 'contentBackgroundColor', otherwise: '#ffffff' },
  { key: 'footerBackgroundColor', otherwise: '#ffffff' },
  { key: 'formBackgroundColor', otherwise: '#ffffff' },
  { key: 'inputBackgroundColor', otherwise: '#ffffff' },
  { key: 'inputTextColor', otherwise: '#16181d' },
  { key: 'sentMessageBubbleBgColor', otherwise: '' },
  { key: 'sentMessageBubbleTextColor', otherwise: '#ffffff' },
  { key: 'receivedMessageBubbleBgColor', otherwise: '#eef0f3' },
  { key: 'receivedMessageBubbleTextColor', otherwise: '#16181d' },
] as const;

export type ColourKey = (typeof COLOURS)[number]['key'];

/** Returns the effective colour of the widget: the setting, or the default. The visitor's bubbles default to the primary colour. */
export function shownColour(configs: Data, key: ColourKey): string {
  const own = text(configs[key]);
  if (parseHex(own)) return own;
  const { otherwise } = COLOURS.find((c) => c.key === key)!;
  return otherwise || shownColour(configs, 'primaryBackgroundColor');
}

/** Returns the configured text colours with a contrast below 4.5:1 to their background. The widget adjusts these text colours. */
export function unreadable(configs: Data): { text: ColourKey; ratio: number }[] {
  const pairs: [ColourKey, ColourKey][] = [
    ['primaryTextColor', 'primaryBackgroundColor'],
    ['inputTextColor', 'inputBackgroundColor'],
    ['sentMessageBubbleTextColor', 'sentMessageBubbleBgColor'],
    ['receivedMessageBubbleTextColor', 'receivedMessageBubbleBgColor'],
  ];
  return pairs
    .filter(([front]) => parseHex(text(configs[front])))
    .map(([front, back]) => ({
      text: front,
      ratio: contrast(parseHex(shownColour(configs, front))!, parseHex(shownColour(configs, back))!),
    }))
    .filter(({ ratio }) => ratio < 4.5);
}

export type FieldMode = 'hidden' | 'optional' | 'required';

export const FORM_FIELDS = ['firstName', 'lastName', 'email', 'phone', 'userId'];

const names = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((v): v is string => typeof v === 'string') : [];

/** Returns the fields of the form: the known fields first, then the others from the settings. */
export function formFields(configs: Data): { name: string; mode: FieldMode }[] {
  const shown = names(configs.formInputs);
  const required = names(configs.requiredFields);
  return [...new Set([...FORM_FIELDS, ...shown, ...required])].map((name) => ({
    name,
    mode: required.includes(name) ? 'required' : shown.includes(name) ? 'optional' : 'hidden',
  }));
}

export function withField(configs: Data, name: string, mode: FieldMode): Data {
  const all = formFields(configs).map((f) => (f.name === name ? { ...f, mode } : f));
  return {
    ...configs,
    formInputs: all.filter((f) => f.mode !== 'hidden').map((f) => f.name),
    requiredFields: all.filter((f) => f.mode === 'required').map((f) => f.name),
  };
}

export const greetings = (configs: Data): string[] => list(configs.greetingMessages).map((g) => text(g.content));

/** Sets the texts of the greetings. A greeting keeps its other members, such as the translations. */
export function withGreetings(configs: Data, contents: string[]): Data {
  const before = list(configs.greetingMessages);
  const edited = before.length === contents.length;
  const known = (content: string, i: number) =>
    before.find((g) => text(g.content) === content) ?? (edited ? before[i] : undefined);
  return { ...configs, greetingMessages: contents.map((content, i) => ({ ...known(content, i), content })) };
}

/** Sets a key, or removes it when the value is empty. Unknown settings are kept. */
export function withKey(configs: Data, key: string, value: string): Data {
  const { [key]: _, ...rest } = configs;
  return value.trim() ? { ...configs, [key]: value.trim() } : rest;
}

export const draftOf = (a: Application): ApplicationDraft => ({
  name: a.name,
  botName: a.botName,
  widgetConfigs: a.widgetConfigs,
  allowedOrigins: a.allowedOrigins,
  fileRetentionSeconds: a.fileRetentionSeconds,
});

export const same = (a: ApplicationDraft, b: ApplicationDraft): boolean => JSON.stringify(a) === JSON.stringify(b);

/** Returns the draft to send, without empty greetings and origins. */
export function cleaned(d: ApplicationDraft): ApplicationDraft {
  const { greetingMessages, ...rest } = d.widgetConfigs;
  const contents = greetings(d.widgetConfigs).filter((g) => g.trim());
  return {
    ...d,
    name: d.name.trim(),
    botName: d.botName.trim(),
    allowedOrigins: d.allowedOrigins.map((o) => o.trim()).filter(Boolean),
    widgetConfigs: greetingMessages === undefined ? rest : withGreetings(d.widgetConfigs, contents),
  };
}

/** Returns the origin of a URL or host name, or undefined when the value is neither. */
export function originOf(value: string): string | undefined {
  try {
    const u = new URL(value.includes('://') ? value : `https://${value}`);
    return /^https?:$/.test(u.protocol) ? u.origin : undefined;
  } catch {
    return undefined;
  }
}
