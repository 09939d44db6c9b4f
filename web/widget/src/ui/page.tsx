import { Component } from 'preact';
import type { Data, Message } from '@parley/shared/message.js';
import type { Render } from '@parley/shared/render/content.js';
import type { Language } from '../i18n.js';
import type { State } from '../state/reducer.js';
import { Row, type Answer } from './row.js';

/** Messages per page. Pages are the unit of virtualisation. */
export const PAGE_SIZE = 20;

export interface Page {
  key: number;
  messages: Message[];
}

/** Splits messages into pages aligned to ordinals, so that loading older messages does not shift page boundaries. */
export function paginate(messages: Message[], base: number): Page[] {
  const pages: Page[] = [];
  for (let i = 0; i < messages.length; ) {
    const key = Math.floor((base + i) / PAGE_SIZE);
    const end = Math.min(messages.length, (key + 1) * PAGE_SIZE - base);
    pages.push({ key, messages: messages.slice(i, end) });
    i = end;
  }
  return pages;
}

/**
 * The last answers to the questions on a page, by question id. JSON, so that shouldComponentUpdate compares it by
 * value.
 */
export function chosenPayloads({ messages, outbox }: State, page: Message[]): string {
  const asked = new Set(page.filter((m) => m.isFromSupport).map((m) => m.id));
  const found: Record<string, Answer> = {};
  const add = (type: string, { replyTo: to, payload }: Data, choosing?: boolean) => {
    if (type === 'MULTIPLE_CHOICE_REPLY' && typeof to === 'string' && asked.has(to) && typeof payload === 'string')
      found[to] = [payload, choosing];
  };
  for (const m of messages) add(m.type, m.data);
  for (const { body, failed } of outbox) if (body && !failed) add(body.type, body.data, true);
  return JSON.stringify(found);
}

interface PageProps {
  id: number;
  messages: Message[];
  before: Message | undefined;
  after: Message | undefined;
  /** The agents have read up to this time. */
  seen: string;
  ends: string[];
  newest: string;
  answers: string;
  active: string;
  language: Language;
  render: Render;
  now: number;
}

/** A page of messages. It renders again only if something on it has changed. */
export class PageView extends Component<PageProps> {
  override shouldComponentUpdate(next: PageProps) {
    const p = this.props;
    if (next.messages.length !== p.messages.length || next.messages.some((m, i) => m !== p.messages[i])) return true;
    const touches = (key: string) => key !== '' && next.messages.some((m) => m.id === key);
    if (next.active !== p.active && (touches(next.active) || touches(p.active))) return true;
    if (next.newest !== p.newest && (touches(next.newest) || touches(p.newest))) return true;
    return (
      next.before !== p.before ||
      next.after !== p.after ||
      next.seen !== p.seen ||
      next.answers !== p.answers ||
      next.language !== p.language ||
      next.render !== p.render ||
      next.now !== p.now
    );
  }

  override render({ messages, before, after, id, active, newest, answers, ...p }: PageProps) {
    const chosen = JSON.parse(answers) as Record<string, Answer>;
    return (
      <div class="page" data-page={id}>
        {messages.map((m, i) => (
          <Row
            key={m.id}
            message={m}
            before={messages[i - 1] ?? before}
            after={messages[i + 1] ?? after}
            reachable={m.id === active || m.id === newest}
            answer={chosen[m.id]}
            {...p}
          />
        ))}
      </div>
    );
  }
}
