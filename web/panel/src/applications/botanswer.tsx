/** The answer of a call and what was sent for it, as the console and the log of calls show them. */
import type { BotCall } from '../api/types.js';
import { strings } from '../strings.js';
import { Badge } from '../ui/states.js';
import { Fold } from '../ui/fold.js';
import { indented } from '../webhooks/headers.js';
import { measuresOf } from './botcall.js';

const s = strings.bot.calls;

/** The text of an answer, or why there is none. */
export function Answer({ call: { answer, failure, handover } }: { call: BotCall }) {
  return (
    <>
      {answer && <p class="said">{answer}</p>}
      {!answer && !failure && <p class="faint">{s.noAnswer}</p>}
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

/** What a call has taken, and the messages that were sent. It changes without an announcement. */
export function Sent({ call }: { call: BotCall }) {
  return (
    <div aria-live="off">
      <p class="faint small">{measuresOf(call).join(' · ')}</p>
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
