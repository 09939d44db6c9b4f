/**
 * What the panel says about the calls and the usage of a bot, and the conversation that the console sends. botconsole.tsx,
 * botcalls.tsx and botusage.tsx render it.
 */
import { object, readMessage } from '@parley/shared/message.js';
import type { BotCall, BotTurn, BotUsage } from '../api/types.js';
import { lineOf } from '../inbox/line.js';
import { count, formatNumber, locale } from '../lib/format.js';
import { strings } from '../strings.js';

const s = strings.bot.calls;

/** A question of the console, and its answer. */
export interface Exchange {
  question: string;
  call: BotCall;
}

/** The API's maximum of messages of a conversation. */
const MAX_TURNS = 40;

/** Returns the conversation that ends with a question: the last messages, without answers that have no text. */
export function conversationOf(said: Exchange[], question: string): BotTurn[] {
  const turns: BotTurn[] = [];
  for (const x of said) {
    turns.push({ role: 'user', text: x.question });
    if (x.call.answer) turns.push({ role: 'assistant', text: x.call.answer });
  }
  turns.push({ role: 'user', text: question });
  return turns.slice(-MAX_TURNS);
}

/** Returns the visitor's words that a call is about: the user's last turn, or the message in the body of a webhook. */
export function questionOf({ sent }: BotCall): string {
  const asked = sent.findLast((t) => t.role === 'user');
  if (asked) return asked.text;
  const body = sent.find((t) => t.role === 'body');
  return body ? messageIn(body.text) : '';
}

function messageIn(body: string): string {
  try {
    const { message } = object(JSON.parse(body));
    return lineOf(readMessage({ id: 'any', ...object(message) })!);
  } catch {
    return ''; // a long body is cut
  }
}

/** Returns the duration, the tokens and the cost of a call. */
export function measuresOf(call: BotCall): string[] {
  const tokens = (call.inputTokens ?? 0) + (call.outputTokens ?? 0);
  return [
    s.milliseconds(formatNumber(call.milliseconds)),
    ...(tokens ? [count(tokens, s.tokenForms)] : []),
    ...(call.cost ? [costOf(call.cost, call.currency)] : []),
  ];
}

const cost = new Intl.NumberFormat(locale, { maximumSignificantDigits: 3 });

const costOf = (n: number, currency = ''): string => [cost.format(n), currency].filter(Boolean).join(' ');

/** Returns what has answered: the version, or that it was none. */
export const answeredBy = ({ version, kind, model }: BotCall): string =>
  [version ? strings.bot.version(version) : s.noVersion, strings.bot.kinds[kind][0], model].filter(Boolean).join(' · ');

/** The part of a bound from which the panel warns, in percent. */
const WARN_AT = 80;

/** How much of the bounds of the day is used: of the one that is used most, in whole percent. */
export interface UsageLevel {
  level: 'free' | 'near' | 'reached';
  percent: number;
}

export function levelOf({ today, bounds }: BotUsage): UsageLevel {
  const percent = Math.max(percentOf(today.questions, bounds.questions), percentOf(today.tokens, bounds.tokens));
  return { level: percent >= 100 ? 'reached' : percent >= WARN_AT ? 'near' : 'free', percent };
}

/** Returns the used part of a bound, rounded down; 0 without one. */
export const percentOf = (used: number, bound: number): number => (bound ? Math.floor((used * 100) / bound) : 0);
