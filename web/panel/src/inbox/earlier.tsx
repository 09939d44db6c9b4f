import type { Agent, Chat } from '../api/types.js';
import { formatDate } from '../lib/format.js';
import { strings } from '../strings.js';
import { Button } from '../ui/button.js';
import { Glyph } from '../ui/icon.js';
import { lineOf } from './line.js';

const s = strings.inbox;

/** The earlier conversations of a visitor, newest first. */
export function Earlier({ chats }: { chats: Chat[] }) {
  return (
    <ul class="earlier">
      {chats.map((c) => (
        <li key={c.id}>
          <a href={`#/inbox/${c.id}`}>{formatDate(c.activityAt)}</a>
          <span dir="auto">
            {[c.assignee && s.with(c.assignee.name), c.lastMessage && lineOf(c.lastMessage)]
              .filter(Boolean)
              .join(' · ')}
          </span>
        </li>
      ))}
    </ul>
  );
}

/** The agent who last had a chat of the visitor. */
export const lastAgent = (earlier: Chat[]): Agent | undefined => earlier.find((c) => c.assignee)?.assignee ?? undefined;

/** Suggests the agent who knows the visitor for a chat that waits. */
export function Suggestion({
  agent,
  me,
  online,
  assign,
}: {
  agent: Agent;
  me: string;
  online: boolean;
  assign(): void;
}) {
  const mine = agent.id === me;
  return (
    <div class="handover" role="note" aria-label={s.suggestion}>
      <Glyph name="history" size={16} />
      <p>
        {mine ? s.youKnow : s.knows(agent.name)}
        {!mine && !online && ` ${s.notHere}`}
      </p>
      {(mine || online) && (
        <Button small onClick={assign}>
          {mine ? s.assignMe : s.assignTo(agent.name)}
        </Button>
      )}
    </div>
  );
}
