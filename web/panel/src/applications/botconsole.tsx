/** The card "Console" of the tab "Bot": a conversation with the draft as the form has it. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { messageOf } from '../api/client.js';
import type { BotSettings } from '../api/types.js';
import { strings } from '../strings.js';
import { Button } from '../ui/button.js';
import { Field, TextArea } from '../ui/field.js';
import { Card } from '../ui/page.js';
import { Notice } from '../ui/states.js';
import { Answer, Sent } from './botanswer.js';
import { conversationOf, type Exchange } from './botcall.js';
import { useTest } from './bottest.js';

const s = strings.bot.console;

export function Console({ appId, settings }: { appId: string; settings: BotSettings }) {
  const [said, setSaid] = useState<Exchange[]>([]);
  const [question, setQuestion] = useState('');
  /** The question whose answer is awaited. */
  const [pending, setPending] = useState('');
  const { busy, error, ask, stop, clear } = useTest(appId);
  const input = useRef<HTMLTextAreaElement>(null);

  const send = async () => {
    const asked = question.trim();
    if (!asked || busy) return;
    setQuestion('');
    setPending(asked);
    const call = await ask({ settings, conversation: conversationOf(said, asked) });
    setPending('');
    if (call) setSaid((before) => [...before, { question: asked, call }]);
    else setQuestion(asked);
  };
  const stopWaiting = () => {
    stop();
    input.current?.focus();
  };
  const startAgain = () => {
    setSaid([]);
    clear();
    input.current?.focus();
  };
  const keys = (e: KeyboardEvent) => {
    if (e.key !== 'Enter' || e.shiftKey || e.isComposing) return;
    e.preventDefault();
    void send();
  };

  return (
    <Card
      title={s.title}
      lead={s.lead}
      actions={
        said.length > 0 &&
        !busy && (
          <Button small icon="refresh" onClick={startAgain}>
            {s.again}
          </Button>
        )
      }
    >
      <Conversation said={said} pending={pending} />
      {!!error && <Notice kind="bad">{messageOf(error)}</Notice>}
      <Field label={s.question}>
        <TextArea
          rows={2}
          spellcheck
          maxLength={4096}
          areaRef={input}
          value={question}
          change={setQuestion}
          readOnly={busy}
          aria-disabled={busy || undefined}
          onKeyDown={keys}
        />
      </Field>
      <div class="row-flex">
        <Button icon="send" busy={busy} onClick={() => void send()}>
          {s.send}
        </Button>
        {busy && <Button onClick={stopWaiting}>{s.stop}</Button>}
        <span class="muted" role="status">
          {busy && s.waiting}
        </span>
      </div>
    </Card>
  );
}

/** What has been said. New answers are announced. */
function Conversation({ said, pending }: { said: Exchange[]; pending: string }) {
  const log = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const at = log.current!;
    at.scrollTop = at.scrollHeight;
  }, [said, pending]);
  const empty = !said.length && !pending;
  return (
    <div ref={log} class="talk" role="log" aria-label={s.conversation} tabIndex={0}>
      {empty && <p class="faint">{s.empty}</p>}
      {said.map(({ question, call }, i) => (
        <div key={i} class="stack">
          <Question text={question} />
          <div class="talk-part theirs">
            <span class="legend">{s.bot}</span>
            <Answer call={call} />
            <Sent call={call} />
          </div>
        </div>
      ))}
      {pending && <Question text={pending} />}
    </div>
  );
}

const Question = ({ text }: { text: string }) => (
  <div class="talk-part mine">
    <span class="legend">{s.you}</span>
    <p class="said">{text}</p>
  </div>
);
