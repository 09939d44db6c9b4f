import { useEffect, useRef, useState } from 'preact/hooks';
import { object, text, type Data } from '@parley/shared/message.js';
import { client } from '../api/client.js';
import { formatClock } from '../lib/format.js';
import { strings } from '../strings.js';
import { Button } from '../ui/button.js';
import { Code } from '../ui/copy.js';
import { Dialog } from '../ui/dialog.js';
import { Field, Select, TextInput } from '../ui/field.js';
import { Badge, Empty, Notice } from '../ui/states.js';
import { VirtualList } from '../ui/virtual.js';

const s = strings.streams;

/** The maximum number of lines kept on the screen. */
const MAX_LINES = 2000;

/** The event kinds of the API. */
const KINDS = [
  'company-message',
  'push',
  'registration',
  'visitor-message',
  'rating',
  'control',
  'reply',
  'outbound',
  'status',
  'dead',
  'revocation',
];

interface Line {
  n: number;
  data: Data;
}

/** Shows events as they are published. */
export function Tail() {
  const [filter, setFilter] = useState({ stream: '', kind: '', chatId: '', appId: '', since: '10m' });
  const [running, setRunning] = useState(true);
  const [state, setState] = useState<'connecting' | 'open' | 'lost'>('connecting');
  const [lines, setLines] = useState<Line[]>([]);
  const [shown, setShown] = useState<Data>();
  const next = useRef(0);
  const key = JSON.stringify(filter);
  useEffect(() => {
    if (!running) return;
    setLines([]);
    setState('connecting');
    let source: EventSource | undefined;
    let waiting: Line[] = [];
    // Batch the rendering, because many events may arrive at once.
    const draw = setInterval(() => {
      if (!waiting.length) return;
      const more = waiting.reverse();
      waiting = [];
      setLines((old) => [...more, ...old].slice(0, MAX_LINES));
    }, 150);
    const start = setTimeout(() => {
      source = new EventSource(client.url('tail', { ...filter, companyId: '' }));
      source.onopen = () => setState('open');
      source.onerror = () => {
        setState('lost');
        source?.close(); // the stream has no event ids, so a reconnect would start over
      };
      source.addEventListener('event', (e) => {
        try {
          waiting.push({ n: next.current++, data: object(JSON.parse(e.data as string)) });
        } catch {
          // malformed event: ignored
        }
      });
    }, 300);
    return () => {
      clearInterval(draw);
      clearTimeout(start);
      source?.close();
    };
  }, [key, running]);
  const change = (c: Partial<typeof filter>) => setFilter({ ...filter, ...c });
  return (
    <>
      <div class="toolbar">
        <Field label={s.stream} class="inline">
          <TextInput value={filter.stream} change={(stream) => change({ stream })} placeholder={s.anyValue} />
        </Field>
        <Field label={s.kind} class="inline">
          <Select
            value={filter.kind}
            change={(kind) => change({ kind })}
            options={[{ value: '', label: s.anyValue }, ...KINDS.map((value) => ({ value, label: value }))]}
          />
        </Field>
        <Field label={strings.inbox.chatId} class="inline">
          <TextInput
            value={filter.chatId}
            change={(chatId) => change({ chatId: chatId.trim() })}
            placeholder={s.anyValue}
          />
        </Field>
        <Field label={s.since} class="inline">
          <Select
            value={filter.since}
            change={(since) => change({ since })}
            options={s.sinces.map(([value, label]) => ({ value, label }))}
          />
        </Field>
        <span class="grow-1" />
        <Badge kind={!running ? 'plain' : state === 'open' ? 'good' : state === 'lost' ? 'bad' : 'plain'}>
          {!running ? s.paused : s.tailStates[state]}
        </Badge>
        <Button
          icon={running && state !== 'lost' ? 'pause' : 'play'}
          onClick={() => {
            if (state === 'lost' && running) {
              setFilter({ ...filter });
              setRunning(false);
              setTimeout(() => setRunning(true));
            } else setRunning(!running);
          }}
        >
          {running && state !== 'lost' ? s.pause : s.resume}
        </Button>
      </div>
      {running && state === 'lost' && <Notice kind="warn">{s.tailLost}</Notice>}
      {!lines.length && (
        <Empty icon="streams" title={s.tailEmpty}>
          {s.tailEmptyLead}
        </Empty>
      )}
      {lines.length > 0 && (
        <div class="tail">
          <VirtualList
            label={s.tail}
            items={lines}
            rowHeight={38}
            keyOf={(l) => String(l.n)}
            row={({ data: d }) => (
              <button type="button" class="tail-row" onClick={() => setShown(d)}>
                <time>{formatClock(text(d.time))}</time>
                <span class="tail-stream">{text(d.stream)}</span>
                <Badge kind={text(d.reason) ? 'bad' : 'plain'}>{text(d.kind) || text(d.type)}</Badge>
                <span class="tail-text">
                  {[text(d.from), text(d.reason) || text(d.text) || text(d.subject)].filter(Boolean).join(': ')}
                </span>
              </button>
            )}
          />
        </div>
      )}
      {shown && (
        <Dialog
          wide
          title={text(shown.kind) || s.event}
          close={() => setShown(undefined)}
          footer={
            text(shown.messageId) && (
              <a class="btn secondary" href={`#/streams/trace/${text(shown.messageId)}`}>
                <span>{s.traceAction}</span>
              </a>
            )
          }
        >
          <Code label={s.asJson} text={JSON.stringify(shown, null, 2)} />
        </Dialog>
      )}
    </>
  );
}
