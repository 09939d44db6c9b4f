/**
 * The bot of an application as a form, and what the panel says about its settings and versions. bot.tsx and
 * connections.tsx render it.
 */
import type {
  AllowedTool,
  Bot,
  BotKind,
  BotSettings,
  BotVersion,
  CreateConnection,
  ListedTool,
  ToolServer,
} from '../api/types.js';
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
  /** Of the company's documents, with each question. */
  passages: string;
  /** Whether the model writes words to search with. */
  expanded: boolean;
  toolServers: ToolServer[];
  /** Titles of the buttons below a question. */
  agree: string;
  decline: string;
  failureText: string;
  /** Whether the visitor reads nothing when the bot gives up. */
  silent: boolean;
  onFailure: boolean;
  /** One phrase a line. */
  phrases: string;
  inputPrice: string;
  outputPrice: string;
  currency: string;
  callsAtOnce: string;
  /** Bounds of a day: of all visitors, and of each one. */
  questions: string;
  tokens: string;
  visitorQuestions: string;
  visitorTokens: string;
  exhaustedText: string;
}

const textOf = (n: number | undefined): string => (n ? String(n) : '');

export function formOf({ kind, webhook, model, failureText = '', handover, bounds }: BotSettings): BotForm {
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
    passages: textOf(model?.knowledge?.passages),
    expanded: model?.knowledge?.search !== 'plain',
    toolServers: model?.tools?.servers ?? [],
    agree: model?.tools?.agree ?? '',
    decline: model?.tools?.decline ?? '',
    failureText: silent ? '' : failureText,
    silent,
    onFailure: !!handover?.onFailure,
    phrases: (handover?.phrases ?? []).join('\n'),
    inputPrice: textOf(model?.prices?.input),
    outputPrice: textOf(model?.prices?.output),
    currency: model?.prices?.currency ?? '',
    callsAtOnce: textOf(bounds?.callsAtOnce),
    questions: textOf(bounds?.application?.questions),
    tokens: textOf(bounds?.application?.tokens),
    visitorQuestions: textOf(bounds?.visitor?.questions),
    visitorTokens: textOf(bounds?.visitor?.tokens),
    exhaustedText: bounds?.exhaustedText ?? '',
  };
}

/** The kinds whose calls of a server can be bounded. */
const BOUNDED: BotKind[] = ['default', 'webhook', 'model'];

export const isBounded = (kind: BotKind): boolean => BOUNDED.includes(kind);

const isSet = (part: object): boolean => Object.keys(part).length > 0;

export const hasBounds = (f: BotForm): boolean => isSet(boundsOf(f));

export const hasPrices = (f: BotForm): boolean => isSet(pricesOf(f));

/** Returns the settings to send: those of the kind, without defaults. */
export function settingsOf(f: BotForm): BotSettings {
  if (f.kind === 'none') return { kind: 'none' };
  const failureText = f.silent ? NO_FAILURE_TEXT : f.failureText.trim();
  const handover = handoverOf(f);
  const bounds = isBounded(f.kind) ? boundsOf(f) : {};
  return {
    kind: f.kind,
    ...(f.kind === 'webhook' && { webhook: webhookOf(f) }),
    ...(f.kind === 'model' && { model: modelOf(f) }),
    ...(failureText && { failureText }),
    ...(isSet(handover) && { handover }),
    ...(isSet(bounds) && { bounds }),
  };
}

function webhookOf(f: BotForm): NonNullable<BotSettings['webhook']> {
  const deadlineSeconds = Number(f.deadline);
  return { url: f.url.trim(), ...(deadlineSeconds && { deadlineSeconds }) };
}

function modelOf(f: BotForm): NonNullable<BotSettings['model']> {
  const history = Number(f.history);
  const maxTokens = Number(f.maxTokens);
  const prices = pricesOf(f);
  const passages = Number(f.passages);
  const tools = toolsOf(f);
  return {
    connectionId: f.connectionId,
    model: f.model.trim(),
    ...(f.prompt && { prompt: f.prompt }),
    ...(history && { history }),
    ...(f.temperature && { temperature: Number(f.temperature) }),
    ...(maxTokens && { maxTokens }),
    ...(isSet(prices) && { prices }),
    ...(passages && { knowledge: { passages, ...(!f.expanded && { search: 'plain' as const }) } }),
    ...(isSet(tools) && { tools }),
  };
}

function toolsOf(f: BotForm): NonNullable<NonNullable<BotSettings['model']>['tools']> {
  if (!f.toolServers.length) return {};
  const agree = f.agree.trim();
  const decline = f.decline.trim();
  const servers = f.toolServers.map(({ connectionId, tools }) => ({ connectionId, tools: tools.map(allowedOf) }));
  return { servers, ...(agree && { agree }), ...(decline && { decline }) };
}

/** A tool as it is sent: only one that changes something has a question. */
function allowedOf({ name, effect, question = '' }: AllowedTool): AllowedTool {
  const asked = effect === 'changes' ? question.trim() : '';
  return { name, effect, ...(asked && { question: asked }) };
}

function pricesOf(f: BotForm): NonNullable<NonNullable<BotSettings['model']>['prices']> {
  const input = Number(f.inputPrice);
  const output = Number(f.outputPrice);
  const currency = f.currency.trim();
  return { ...(input && { input }), ...(output && { output }), ...(currency && { currency }) };
}

function boundsOf(f: BotForm): NonNullable<BotSettings['bounds']> {
  const callsAtOnce = Number(f.callsAtOnce);
  const application = amountOf(f.questions, f.tokens);
  const visitor = amountOf(f.visitorQuestions, f.visitorTokens);
  const exhaustedText = f.exhaustedText.trim();
  return {
    ...(callsAtOnce && { callsAtOnce }),
    ...(isSet(application) && { application }),
    ...(isSet(visitor) && { visitor }),
    ...(exhaustedText && { exhaustedText }),
  };
}

function amountOf(questionsText: string, tokensText: string): { questions?: number; tokens?: number } {
  const questions = Number(questionsText);
  const tokens = Number(tokensText);
  return { ...(questions && { questions }), ...(tokens && { tokens }) };
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

const COMMON_FIELDS = ['failureText', 'handover.phrases'];

const AMOUNTS = ['application.questions', 'application.tokens', 'visitor.questions', 'visitor.tokens'];
const BOUND_FIELDS = ['callsAtOnce', ...AMOUNTS, 'exhaustedText'].map((name) => `bounds.${name}`);
const MODEL_FIELDS = ['connectionId', 'model', 'prompt', 'history', 'temperature', 'maxTokens', 'knowledge.passages'];
const PRICE_FIELDS = ['prices.input', 'prices.output', 'prices.currency'];

/** The paths of the fields that the form of a kind shows an error at. */
const FIELDS: Record<BotKind, string[]> = {
  default: [...COMMON_FIELDS, ...BOUND_FIELDS],
  none: [],
  demo: COMMON_FIELDS,
  webhook: [...COMMON_FIELDS, ...BOUND_FIELDS, 'webhook.url', 'webhook.deadlineSeconds'],
  model: [...COMMON_FIELDS, ...BOUND_FIELDS, ...[...MODEL_FIELDS, ...PRICE_FIELDS].map((name) => `model.${name}`)],
};

/** The same of the tools, whose paths have places: `model.tools.servers[0].tools[1].name`. */
const TOOL_FIELD =
  /^model\.tools\.(agree|decline|servers(\[\d+\]\.(connectionId|tools(\[\d+\]\.(name|effect|question))?))?)$/;

const isShown = (path: string, kind: BotKind): boolean =>
  FIELDS[kind].includes(path) || (kind === 'model' && TOOL_FIELD.test(path));

/** Whether a field of a folded part of the form has an error. */
export const hasErrorIn = (part: 'bounds' | 'model.prices', errors: Record<string, string>): boolean =>
  Object.keys(errors).some((path) => path.startsWith(`${part}.`));

/** Returns the errors of fields that the form does not show. */
export const otherErrors = (errors: Record<string, string>, kind: BotKind): string[] =>
  Object.entries(errors)
    .filter(([path]) => !isShown(path, kind))
    .map(([path, message]) => `${path}: ${message}`);

/** A tool of a server as the form shows it: what the server says, what the settings allow, or both. */
export interface ToolChoice {
  name: string;
  listed: ListedTool | undefined;
  /** Absent: it may not be called. */
  allowed: AllowedTool | undefined;
  /** The place of `allowed` in the settings, which errors name; -1 without one. */
  index: number;
}

/** Returns the tools that the server has, and then those that only the settings have. */
export function toolChoices(allowed: AllowedTool[], listed: ListedTool[] = []): ToolChoice[] {
  const names = new Set([...listed, ...allowed].map((t) => t.name));
  return [...names].map((name) => {
    const index = allowed.findIndex((t) => t.name === name);
    return { name, listed: listed.find((t) => t.name === name), allowed: allowed[index], index };
  });
}

/** Returns the settings of a tool that was not allowed before: the visitor is asked unless the server says otherwise. */
export const newTool = ({ name, listed }: ToolChoice): AllowedTool => ({
  name,
  effect: listed?.readOnly ? 'reads' : 'changes',
});

/** Returns tools with another one at a place, or at the end if it has none; undefined removes it. */
export const withTool = (all: AllowedTool[], index: number, tool?: AllowedTool): AllowedTool[] =>
  all.toSpliced(index < 0 ? all.length : index, 1, ...(tool ? [tool] : []));

/** Whether servers and tools are the same in the same places. */
export function samePlaces(a: ToolServer[], b: ToolServer[]): boolean {
  const places = (all: ToolServer[]) => JSON.stringify(all.map((x) => [x.connectionId, x.tools.map((t) => t.name)]));
  return places(a) === places(b);
}

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
