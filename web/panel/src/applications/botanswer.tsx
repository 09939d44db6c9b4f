/** The answer of a call and what was sent for it, as the console and the log of calls show them. */
import type { BotCall, Citation, ToolUse } from '../api/types.js';
import { formatNumber } from '../lib/format.js';
import { strings } from '../strings.js';
import { Badge } from '../ui/states.js';
import { ExternalLink } from '../ui/external.js';
import { Fold } from '../ui/fold.js';
import { indented } from '../webhooks/headers.js';
import { measuresOf } from './botcall.js';

const s = strings.bot.calls;

/** The text of an answer with its citations, or why there is none. */
export function Answer({ call: { answer, citations = [], unanswered, failure, handover } }: { call: BotCall }) {
  return (
    <>
      {answer && <p class="said">{answer}</p>}
      {!answer && !failure && <p class="faint">{s.noAnswer}</p>}
      {citations.length > 0 && <Citations all={citations} />}
      {unanswered && (
        <p>
          <Badge kind="warn">{s.unanswered}</Badge>
        </p>
      )}
      {handover && (
        <p>
          <Badge kind="accent">{s.handedOver}</Badge>
        </p>
      )}
      {failure && (
        <p class="wrap-any">
          <Badge kind="bad">{s.failed}</Badge> {failure.message} <code class="faint">{failure.reason}</code>
        </p>
      )}
    </>
  );
}

/** The passages of documents that an answer cites. */
function Citations({ all }: { all: Citation[] }) {
  return (
    <ul class="small" aria-label={s.citations}>
      {all.map(({ number, title, address }) => (
        <li key={number} class="wrap-any">
          [{number}] {address ? <ExternalLink href={address}>{title}</ExternalLink> : title}
        </li>
      ))}
    </ul>
  );
}

/** What a call has taken, its calls of tools, and the messages that were sent. It changes without an announcement. */
export function Sent({ call }: { call: BotCall }) {
  return (
    <div aria-live="off">
      <p class="faint small">{measuresOf(call).join(' · ')}</p>
      {call.searchWords && (
        <p class="faint small wrap-any">
          {s.searchWords}: {call.searchWords}
        </p>
      )}
      {call.tools && <ToolUses all={call.tools} />}
      <Fold title={s.sent}>
        {!call.sent.length && <p class="faint">{s.nothingSent}</p>}
        {call.sent.length > 0 && (
          <ol class="turns" tabIndex={0} aria-label={s.sent}>
            {call.sent.map((turn, i) => (
              <li key={i}>
                <span class="legend">{s.roles[turn.role]}</span>
                <p class={turn.role === 'body' ? 'said mono' : 'said'}>
                  {turn.role === 'body' ? indented(turn.text) : turn.text}
                </p>
              </li>
            ))}
          </ol>
        )}
      </Fold>
    </div>
  );
}

const OUTCOMES = { ok: 'good', failed: 'bad', asked: 'accent', refused: 'warn', unknown: 'warn' } as const;

/** The calls of tools, in their order. */
function ToolUses({ all }: { all: ToolUse[] }) {
  return (
    <ul class="tool-uses" aria-label={s.tools}>
      {all.map((use, i) => (
        <li key={i}>
          <Fold title={<ToolLine use={use} />}>
            {use.arguments && (
              <>
                <span class="legend">{s.toolArguments}</span>
                <pre class="said">{indented(use.arguments)}</pre>
              </>
            )}
            {use.result && (
              <>
                <span class="legend">{use.outcome === 'asked' ? s.toolQuestion : s.toolResult}</span>
                <pre class="said">{indented(use.result)}</pre>
              </>
            )}
          </Fold>
        </li>
      ))}
    </ul>
  );
}

const ToolLine = ({ use }: { use: ToolUse }) => (
  <>
    <code class="wrap-any">{use.name}</code> <Badge kind={OUTCOMES[use.outcome]}>{s.outcomes[use.outcome]}</Badge>{' '}
    <span class="faint small">{s.milliseconds(formatNumber(use.milliseconds))}</span>
  </>
);
