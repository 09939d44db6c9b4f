/** The card "Calls" of the tab "Bot": the log of calls, and the same questions to the draft. */
import { useState } from 'preact/hooks';
import { applications as api } from '../api/api.js';
import { messageOf } from '../api/client.js';
import type { BotCall, BotSettings } from '../api/types.js';
import { formatFull } from '../lib/format.js';
import { usePages } from '../lib/load.js';
import { can } from '../state.js';
import { strings } from '../strings.js';
import { answerHref } from '../documents/document.js';
import { Button, IconButton, LinkButton } from '../ui/button.js';
import { Checkbox } from '../ui/field.js';
import { Fold } from '../ui/fold.js';
import { Card, Facts } from '../ui/page.js';
import { Badge, Failed, Notice, Skeleton } from '../ui/states.js';
import { Answer, Sent } from './botanswer.js';
import { answeredBy, measuresOf, questionOf } from './botcall.js';
import { useTest } from './bottest.js';

const s = strings.bot.calls;

interface Props {
  appId: string;
  /** The settings of the form. */
  settings: BotSettings;
}

export function Calls({ appId, settings }: Props) {
  const [unanswered, setUnanswered] = useState(false);
  const pages = usePages((cursor, signal) => api.botCalls(appId, unanswered, cursor, signal), [appId, unanswered]);
  return (
    <Card
      title={s.title}
      lead={s.lead}
      actions={<IconButton icon="refresh" label={s.refresh} disabled={pages.loading} onClick={pages.reload} />}
    >
      <Checkbox label={s.unanswered} hint={s.unansweredHint} checked={unanswered} change={setUnanswered} />
      {!pages.ready && pages.loading && <Skeleton rows={3} />}
      {!!pages.error && <Failed error={pages.error} retry={pages.reload} />}
      {pages.ready && !pages.items.length && !pages.more && (
        <p class="muted">{unanswered ? s.noneUnanswered : s.empty}</p>
      )}
      {pages.items.length > 0 && (
        <ul class="calls" aria-label={s.title}>
          {pages.items.map((call) => (
            <li key={call.id}>
              <Fold title={<Line call={call} />}>
                <Details call={call} appId={appId} settings={settings} />
              </Fold>
            </li>
          ))}
        </ul>
      )}
      {pages.more && (
        <div>
          <Button busy={pages.loading} onClick={pages.loadMore}>
            {strings.more}
          </Button>
        </div>
      )}
    </Card>
  );
}

/** A call in one line; in a narrow window, its parts wrap. */
function Line({ call }: { call: BotCall }) {
  return (
    <span class="call-line">
      <time dateTime={call.at}>{formatFull(call.at)}</time>
      <span class="call-text strong">{questionOf(call) || s.noQuestion}</span>
      <span class="call-text">
        {call.failure && <Badge kind="bad">{call.failure.reason}</Badge>}
        {call.handover && <Badge kind="accent">{s.handedOver}</Badge>}{' '}
        {call.unanswered && <Badge kind="warn">{s.unanswered}</Badge>} {call.answer}
      </span>
      <span class="faint">{measuresOf(call).join(' · ')}</span>
    </span>
  );
}

function Details({ call, appId, settings }: Props & { call: BotCall }) {
  const { busy, error, ask, stop } = useTest(appId);
  const [now, setNow] = useState<BotCall>();
  const { messageId } = call;
  const question = questionOf(call);
  const asksAgain = !!messageId && settings.kind !== 'none';
  const again = async () => {
    const answer = await ask({ settings, messageId: messageId! });
    if (answer) setNow(answer);
  };
  return (
    <>
      <Facts
        facts={[
          [s.answered, answeredBy(call)],
          ...(call.server ? ([[s.server, call.server]] satisfies [string, string][]) : []),
        ]}
      />
      <div class="beside" aria-live="polite">
        <div class="call-answer">
          <h3>{s.answerThen}</h3>
          <Answer call={call} />
          <Sent call={call} />
        </div>
        {now && (
          <div class="call-answer">
            <h3>{s.answerNow}</h3>
            <Answer call={now} />
            <Sent call={now} />
          </div>
        )}
      </div>
      {!!error && <Notice kind="bad">{messageOf(error)}</Notice>}
      <div class="row-flex">
        {asksAgain && (
          <Button small icon="refresh" busy={busy} onClick={() => void again()}>
            {s.askAgain}
          </Button>
        )}
        {busy && (
          <Button small onClick={stop}>
            {strings.bot.console.stop}
          </Button>
        )}
        {call.unanswered && question && (
          <LinkButton small icon="edit" href={answerHref(question)}>
            {strings.documents.writeAnswer}
          </LinkButton>
        )}
        {call.chatId && can('inbox') && (
          <LinkButton small icon="inbox" href={`#/inbox/${call.chatId}`}>
            {s.openChat}
          </LinkButton>
        )}
      </div>
    </>
  );
}
