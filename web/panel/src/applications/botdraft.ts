/**
 * The bot of an application as a form, and what the panel says about its settings and versions. bot.tsx and
 * connections.tsx render it.
 */
import type { Bot, BotKind, BotSettings, BotVersion, CreateConnection } from '../api/types.js';
import { formatAgo } from '../lib/format.js';
import { strings } from '../strings.js';

const s = strings.bot;

export const KINDS: BotKind[] = ['default', 'none', 'demo', 'webhook', 'model'];

/** The API's maximum of a system prompt, in bytes. */
export const MAX_PROMPT = 16_384;

/** The failure text that is not sent. */
const NO_FAILURE_TEXT = 'none';

/** The settings as the fields of the form have them. An empty number is the default. */
export interface BotForm {
  kind: BotKind;
  url: string;
  deadline: string;
  connectionId: string;
  model: string;
  prompt: string;
  history: string;
  temperature: string;
  maxTokens: string;
  failureText: string;
  /** Whether the visitor reads nothing when the bot gives up. */
  silent: boolean;
  onFailure: boolean;
  /** One phrase a line. */
  phrases: string;
}

const textOf = (n: number | undefined): string => (n ? String(n) : '');

export function formOf({ kind, webhook, model, failureText = '', handover }: BotSettings): BotForm {
  const silent = failureText === NO_FAILURE_TEXT;
  return {
    kind,
    url: webhook?.url ?? '',
    deadline: textOf(webhook?.deadlineSeconds),
    connectionId: model?.connectionId ?? '',
    model: model?.model ?? '',
    prompt: model?.prompt ?? '',
    history: textOf(model?.history),
    temperature: model?.temperature === undefined ? '' : String(model.temperature),
    maxTokens: textOf(model?.maxTokens),
    failureText: silent ? '' : failureText,
    silent,
    onFailure: !!handover?.onFailure,
    phrases: (handover?.phrases ?? []).join('\n'),
  };
}

/** Returns the settings to send: those of the kind, without defaults. */
export function settingsOf(f: BotForm): BotSettings {
  if (f.kind === 'none') return { kind: 'none' };
  const failureText = f.silent ? NO_FAILURE_TEXT : f.failureText.trim();
  const handover = handoverOf(f);
  return {
    kind: f.kind,
    ...(f.kind === 'webhook' && { webhook: webhookOf(f) }),
    ...(f.kind === 'model' && { model: modelOf(f) }),
    ...(failureText && { failureText }),
    ...(Object.keys(handover).length > 0 && { handover }),
  };
}

function webhookOf(f: BotForm): NonNullable<BotSettings['webhook']> {
  const deadlineSeconds = Number(f.deadline);
  return { url: f.url.trim(), ...(deadlineSeconds && { deadlineSeconds }) };
}

function modelOf(f: BotForm): NonNullable<BotSettings['model']> {
  const history = Number(f.history);
  const maxTokens = Number(f.maxTokens);
  return {
    connectionId: f.connectionId,
    model: f.model.trim(),
    ...(f.prompt && { prompt: f.prompt }),
    ...(history && { history }),
    ...(f.temperature && { temperature: Number(f.temperature) }),
    ...(maxTokens && { maxTokens }),
  };
}

function handoverOf(f: BotForm): NonNullable<BotSettings['handover']> {
  const lines = f.phrases.split('\n').map((line) => line.trim());
  const phrases = lines.filter(Boolean);
  return { ...(f.onFailure && { onFailure: true }), ...(phrases.length > 0 && { phrases }) };
}

/** Whether two settings answer in the same way, however they are written. */
export function sameSettings(a: BotSettings, b: BotSettings): boolean {
  const written = (settings: BotSettings) => JSON.stringify(settingsOf(formOf(settings)));
  return written(a) === written(b);
}

/** The version in force. Without one the operator's default answers. */
export const inForce = (bot: Bot): BotVersion | undefined => bot.versions[0];

/** Whether a publication would change what answers or how. */
export const draftDiffers = (bot: Bot): boolean =>
  !sameSettings(bot.draft, inForce(bot)?.settings ?? { kind: 'default' });

/** The version in force, in one line. */
export function inForceLine(bot: Bot, now = Date.now()): string {
  const v = inForce(bot);
  if (!v) return s.operatorAnswers;
  return s.inForceLine(v.number, s.kinds[v.settings.kind][0].toLowerCase(), publishedLine(v, now));
}

/** The time of a publication, and its author. */
export const publishedLine = (v: BotVersion, now = Date.now()): string =>
  s.published(formatAgo(v.publishedAt, now), v.publishedBy);

/** The kind of settings, and the server or the model. */
export function summaryOf({ kind, webhook, model }: BotSettings): string {
  const detail = kind === 'webhook' ? placeOf(webhook?.url ?? '') : kind === 'model' ? (model?.model ?? '') : '';
  return [s.kinds[kind][0], detail].filter(Boolean).join(' · ');
}

/** An address without its query, which may have a secret. */
function placeOf(url: string): string {
  try {
    const { host, pathname } = new URL(url);
    return host + (pathname === '/' ? '' : pathname);
  } catch {
    return '';
  }
}

export const bytesOf = (text: string): number => new TextEncoder().encode(text).length;

const COMMON_FIELDS = ['failureText', 'handover.phrases'];

/** The paths of the fields that the form of a kind shows an error at. */
const FIELDS: Record<BotKind, string[]> = {
  default: COMMON_FIELDS,
  none: [],
  demo: COMMON_FIELDS,
  webhook: [...COMMON_FIELDS, 'webhook.url', 'webhook.deadlineSeconds'],
  model: [
    ...COMMON_FIELDS,
    ...['connectionId', 'model', 'prompt', 'history', 'temperature', 'maxTokens'].map((name) => `model.${name}`),
  ],
};

/** Returns the errors of fields that the form does not show. */
export const otherErrors = (errors: Record<string, string>, kind: BotKind): string[] =>
  Object.entries(errors)
    .filter(([path]) => !FIELDS[kind].includes(path))
    .map(([path, message]) => `${path}: ${message}`);

/** The fields of a connection. The key is never shown: an empty one leaves it unchanged. */
export interface ConnectionForm {
  name: string;
  baseUrl: string;
  apiKey: string;
  removeKey: boolean;
}

/** Returns the body that creates or changes a connection. */
export function connectionOf(f: ConnectionForm): CreateConnection {
  const apiKey = f.removeKey ? '' : f.apiKey.trim();
  return { name: f.name.trim(), baseUrl: f.baseUrl.trim(), ...((f.removeKey || apiKey) && { apiKey }) };
}
