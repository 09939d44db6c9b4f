import { Fragment } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { streams as api } from '../api/api.js';
import { messageOf } from '../api/client.js';
import type { ConsumerState, StreamState, Streams } from '../api/types.js';
import { formatAgo, formatBytes, formatClock, formatDuration, formatNumber } from '../lib/format.js';
import { useRoute } from '../lib/router.js';
import { strings } from '../strings.js';
import { Button } from '../ui/button.js';
import { Glyph } from '../ui/icon.js';
import { Card, Page, TabLinks, Table } from '../ui/page.js';
import { Badge, Empty, Failed, Notice, Skeleton } from '../ui/states.js';
import { DeadLetters } from './dead.js';
import { healthOf, ratesOf, type Rates } from './rates.js';
import { Tail } from './tail.js';
import { Trace } from './trace.js';

const s = strings.streams;

/** The polling interval, in milliseconds. */
const POLL_INTERVAL = 3000;

export default function StreamsSection() {
  const { parts } = useRoute();
  const at = parts[1] ?? '';
  const tabs = [
    ['', s.overview, 'streams'],
    ['dead', s.dead, 'alert'],
    ['trace', s.trace, 'route'],
    ['tail', s.tail, 'play'],
  ] as const;
  return (
    <Page wide title={s.title} lead={s.lead}>
      <TabLinks
        label={s.title}
        tabs={tabs.map(([path, label, icon]) => ({
          href: `#/streams${path && `/${path}`}`,
          label,
          icon,
          current: at === path,
        }))}
      />
      {at === '' && <Overview />}
      {at === 'dead' && <DeadLetters />}
      {at === 'trace' && <Trace id={parts[2] ?? ''} />}
      {at === 'tail' && <Tail />}
    </Page>
  );
}

function Overview() {
  const [now, setNow] = useState<Streams>();
  const [rates, setRates] = useState<Rates>({ streams: {}, consumers: {} });
  const [error, setError] = useState<unknown>();
  const [running, setRunning] = useState(true);
  const [round, again] = useState(0);
  const before = useRef<Streams>();
  useEffect(() => {
    if (!running) return;
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    const poll = async () => {
      try {
        const response = await api.list(stop.signal);
        setRates(ratesOf(before.current, response));
        before.current = response;
        setNow(response);
        setError(undefined);
      } catch (err) {
        if (stop.signal.aborted) return;
        setError(err);
      }
      timer = setTimeout(() => void poll(), document.hidden ? POLL_INTERVAL * 10 : POLL_INTERVAL);
    };
    void poll();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [running, round]);
  if (!now) return error ? <Failed error={error} retry={() => again((n) => n + 1)} /> : <Skeleton />;
  return (
    <>
      <div class="toolbar">
        <Button small icon={running ? 'pause' : 'play'} onClick={() => setRunning(!running)}>
          {running ? s.pause : s.resume}
        </Button>
        <span class="faint">{s.asOf(formatClock(now.at).slice(0, 8))}</span>
      </div>
      {!!error && (
        <Notice kind="warn">
          {s.stale} {messageOf(error)}
        </Notice>
      )}
      {now.waiting.map(({ channel, companyId, since }) => (
        <Notice key={`${channel} ${companyId}`} kind="warn">
          {s.waiting(channel, companyId, formatAgo(since))}
        </Notice>
      ))}
      {!now.streams.length && (
        <Empty icon="streams" title={s.none}>
          {s.noneLead}
        </Empty>
      )}
      {now.streams.map((x) => (
        <StreamCard key={x.name} stream={x} rates={rates} />
      ))}
    </>
  );
}

const rate = (n: number | undefined) =>
  n === undefined ? '–' : s.perSecond(n < 10 ? (Math.round(n * 10) / 10).toString() : formatNumber(Math.round(n)));

function StreamCard({ stream: x, rates }: { stream: StreamState; rates: Rates }) {
  const share = x.maxBytes > 0 ? x.bytes / x.maxBytes : 0;
  return (
    <Card
      title={x.name}
      lead={
        <>
          {s.messages(formatNumber(x.messages))} · {formatBytes(x.bytes)}
          {x.maxBytes > 0 && ` ${s.of(formatBytes(x.maxBytes))}`} · {s.in(rate(rates.streams[x.name]))}
          {x.lastAt && ` · ${s.last(formatAgo(x.lastAt))}`}
        </>
      }
      actions={
        x.maxBytes > 0 && (
          <meter
            class="meter"
            min={0}
            max={1}
            low={0.7}
            high={0.9}
            optimum={0}
            value={share}
            aria-label={s.fill(Math.round(share * 100))}
            title={s.fill(Math.round(share * 100))}
          />
        )
      }
    >
      {!x.consumers.length && <p class="faint">{s.noConsumers}</p>}
      {x.consumers.length > 0 && (
        <Table
          label={s.consumersOf(x.name)}
          class="flat"
          numbers={[2, 3, 4, 5, 6]}
          head={[s.consumer, s.state, s.pending, s.inFlight, s.redelivered, s.oldest, s.rate, s.active]}
        >
          {x.consumers.map((c) => (
            <ConsumerRows key={c.name} consumer={c} rate={rate(rates.consumers[`${x.name} ${c.name}`])} />
          ))}
        </Table>
      )}
    </Card>
  );
}

function ConsumerRows({ consumer: c, rate: perSecond }: { consumer: ConsumerState; rate: string }) {
  const [open, setOpen] = useState(false);
  const cells = (x: Omit<ConsumerState, 'name' | 'partitions' | 'deliveredSequence' | 'ackFloor'>, done: string) => {
    const health = healthOf(x);
    return (
      <>
        <td>
          <Badge kind={health === 'good' ? 'good' : health === 'lagging' ? 'warn' : 'bad'}>{s.health[health]}</Badge>
        </td>
        <td class="num">{formatNumber(x.pending)}</td>
        <td class="num">{formatNumber(x.ackPending)}</td>
        <td class="num">{formatNumber(x.redelivered)}</td>
        <td class="num">{x.oldestAgeSeconds > 0 ? formatDuration(x.oldestAgeSeconds) : '–'}</td>
        <td class="num">{done}</td>
        <td class="nowrap">{x.activeAt ? formatAgo(x.activeAt) : '–'}</td>
      </>
    );
  };
  return (
    <Fragment>
      <tr>
        <td class="strong">
          {c.partitions.length > 1 ? (
            <button type="button" class="expander" aria-expanded={open} onClick={() => setOpen(!open)}>
              <Glyph name={open ? 'down' : 'right'} size={16} />
              {c.name}
              <small class="faint">{s.partitions(c.partitions.length)}</small>
            </button>
          ) : (
            c.name
          )}
        </td>
        {cells(c, perSecond)}
      </tr>
      {open &&
        c.partitions.map((p) => (
          <tr key={p.partition} class="part">
            <td>{s.partition(p.partition)}</td>
            {cells(p, '')}
          </tr>
        ))}
    </Fragment>
  );
}
