/** The card "Usage today" of the tab "Bot": what the bot has used of the bounds in force, and the last days. */
import { applications as api } from '../api/api.js';
import type { BotUsage } from '../api/types.js';
import { formatNumber, formatUTCDay } from '../lib/format.js';
import { useLoad } from '../lib/load.js';
import { strings } from '../strings.js';
import { IconButton } from '../ui/button.js';
import { Fold } from '../ui/fold.js';
import { Card, Facts, Table } from '../ui/page.js';
import { Failed, Notice, Skeleton } from '../ui/states.js';
import { levelOf, percentOf } from './botcall.js';

const s = strings.bot.usage;

/** The version in force has the bounds, so another one loads the usage again. */
export function Usage({ appId, version }: { appId: string; version: number | undefined }) {
  const { data, error, loading, reload } = useLoad((signal) => api.botUsage(appId, signal), [appId, version]);
  return (
    <Card
      title={s.title}
      lead={s.lead}
      actions={<IconButton icon="refresh" label={s.refresh} disabled={loading} onClick={reload} />}
    >
      {!data && (error ? <Failed error={error} retry={reload} /> : <Skeleton rows={2} />)}
      {data && <Today usage={data} />}
      {!!data?.days.length && <Days days={data.days} />}
    </Card>
  );
}

function Today({ usage }: { usage: BotUsage }) {
  const { today, bounds } = usage;
  const { level, percent } = levelOf(usage);
  return (
    <>
      {level === 'near' && <Notice kind="warn">{s.near(percent)}</Notice>}
      {level === 'reached' && <Notice kind="warn">{s.reached}</Notice>}
      <Facts
        facts={[
          [s.questions, <Part used={today.questions} bound={bounds.questions} />],
          [s.tokens, <Part used={today.tokens} bound={bounds.tokens} />],
        ]}
      />
    </>
  );
}

/** A number, and the part of its bound. */
function Part({ used, bound }: { used: number; bound: number }) {
  const label = s.percent(percentOf(used, bound));
  if (!bound)
    return (
      <>
        {formatNumber(used)} <span class="faint">({s.noBound})</span>
      </>
    );
  return (
    <span class="row-flex">
      {s.of(formatNumber(used), formatNumber(bound))}
      <meter
        class="meter"
        min={0}
        max={bound}
        low={bound * 0.8}
        high={bound * 0.999}
        optimum={0}
        value={Math.min(used, bound)}
        aria-label={label}
        title={label}
      />
    </span>
  );
}

function Days({ days }: { days: BotUsage['days'] }) {
  return (
    <Fold title={s.days}>
      <Table label={s.days} class="flat" numbers={[1, 2]} head={[s.day, s.questions, s.tokens]}>
        {[...days].reverse().map((d) => (
          <tr key={d.day}>
            <td class="nowrap">{formatUTCDay(d.day)}</td>
            <td class="num">{formatNumber(d.questions)}</td>
            <td class="num">{formatNumber(d.tokens)}</td>
          </tr>
        ))}
      </Table>
    </Fold>
  );
}
