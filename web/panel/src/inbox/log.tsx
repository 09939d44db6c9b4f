/** The messages of the open chat: scrolling, older pages, and the focus of the keyboard. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Render } from '@parley/shared/render/content.js';
import { text } from '@parley/shared/message.js';
import type { Chat, Message } from '../api/types.js';
import { count } from '../lib/format.js';
import { strings } from '../strings.js';
import { Glyph } from '../ui/icon.js';
import type { Conversation, Pending } from './conversation.js';
import { Earlier } from './earlier.js';
import { PendingRow, Row } from './row.js';

const s = strings.inbox;

interface LogProps {
  messages: Message[];
  /** The time up to which the visitor has read. */
  seenUpTo: string;
  pending: Pending[];
  older: 'loading' | 'more' | 'none' | 'failed';
  loadOlder(): void;
  conversation: Conversation;
  render: Render;
  botName: string;
  me: { id: string; name: string };
  visitor: Chat['visitor'] | undefined;
  now: number;
  earlier: Chat[];
  /** Shows the details of a message. */
  show(m: Message): void;
}

export function Log({
  messages,
  seenUpTo,
  pending,
  older,
  loadOlder,
  conversation,
  render,
  botName,
  me,
  visitor,
  now,
  earlier,
  show,
}: LogProps) {
  const box = useRef<HTMLDivElement>(null);
  const sticky = useRef(true);
  const before = useRef({ height: 0, first: '' });
  const [unseen, setUnseen] = useState(0);
  const seen = useRef(messages.at(-1)?.id ?? '');

  useLayoutEffect(() => {
    const b = box.current!;
    const first = messages[0]?.id ?? '';
    if (sticky.current) {
      b.scrollTop = b.scrollHeight;
      seen.current = messages.at(-1)?.id ?? '';
      if (unseen) setUnseen(0);
    } else {
      if (first !== before.current.first) b.scrollTop += b.scrollHeight - before.current.height; // keep the scroll position when older messages are prepended
      const from = messages.findIndex((m) => m.id === seen.current);
      setUnseen(from < 0 ? 0 : messages.slice(from + 1).filter((m) => !m.isFromSupport).length);
    }
    before.current = { height: b.scrollHeight, first };
  }, [messages, pending]);

  useEffect(() => {
    const b = box.current!;
    const watch = new ResizeObserver(() => {
      if (sticky.current) b.scrollTop = b.scrollHeight;
    });
    watch.observe(b);
    watch.observe(b.firstElementChild!);
    return () => watch.disconnect();
  }, []);

  const scrolled = () => {
    const b = box.current;
    if (!b) return; // a scroll event may arrive after the chat was closed
    sticky.current = b.scrollHeight - b.scrollTop - b.clientHeight < 60;
    if (sticky.current && unseen) {
      seen.current = messages.at(-1)?.id ?? '';
      setUnseen(0);
    }
    if (b.scrollTop < 400 && older === 'more') loadOlder();
  };
  const scrollToEnd = () => {
    sticky.current = true;
    box.current!.scrollTop = box.current!.scrollHeight;
  };

  // A sent message replaces the pending one. If that had the focus, it moves along.
  const focusedBefore = box.current?.contains(document.activeElement) && document.activeElement!.closest('.pending');
  useLayoutEffect(() => {
    if (!focusedBefore || focusedBefore.isConnected || document.activeElement !== document.body) return;
    const sent = [...box.current!.querySelectorAll<HTMLElement>('.own:not(.pending)')].at(-1);
    (sent ?? box.current!).focus({ preventScroll: true });
  });

  const keys = (e: KeyboardEvent) => {
    const rows = [...box.current!.querySelectorAll<HTMLElement>('article')];
    const focused = document.activeElement as HTMLElement;
    const i = rows.indexOf(focused);
    if (focused !== box.current && i < 0) return;
    const to = {
      ArrowUp: i < 0 ? rows.length - 1 : i - 1,
      ArrowDown: i < 0 ? rows.length - 1 : i + 1,
      Home: 0,
      End: rows.length - 1,
    }[e.key];
    if (to === undefined) return;
    e.preventDefault();
    const row = rows[Math.max(0, Math.min(rows.length - 1, to))];
    row?.focus({ preventScroll: true });
    row?.scrollIntoView({ block: 'nearest' });
  };

  const chosen = useMemo(() => {
    const found: Record<string, string> = {};
    for (const m of messages)
      if (m.type === 'MULTIPLE_CHOICE_REPLY' && text(m.data.replyTo))
        found[text(m.data.replyTo)] = text(m.data.payload);
    return found;
  }, [messages]);

  return (
    <div class="log-wrap">
      <div
        ref={box}
        class="log"
        role="log"
        aria-label={s.messages}
        aria-live="polite"
        aria-relevant="additions"
        tabIndex={0}
        onScroll={scrolled}
        onKeyDown={keys}
      >
        <div class="log-inside">
          {older === 'more' && (
            <p class="log-note">
              <button type="button" class="textbutton" onClick={loadOlder}>
                {s.loadOlder}
              </button>
            </p>
          )}
          {older === 'loading' && messages.length > 0 && <p class="log-note">{strings.loading}</p>}
          {older === 'failed' && (
            <p class="log-note" role="alert">
              {s.olderFailed}{' '}
              <button type="button" class="textbutton" onClick={loadOlder}>
                {strings.tryAgain}
              </button>
            </p>
          )}
          {older === 'none' && earlier.length > 0 && (
            <section class="earlier-box" aria-label={s.earlier}>
              <h3>{s.earlier}</h3>
              <Earlier chats={earlier.slice(0, 3)} />
            </section>
          )}
          {older === 'none' && <p class="log-note">{messages.length ? s.beginning : s.noMessages}</p>}
          {messages.map((m, i) => (
            <Row
              key={m.id}
              m={m}
              status={statusOf(m, seenUpTo)}
              prev={messages[i - 1]}
              next={messages[i + 1]}
              chosen={chosen[m.id]}
              render={render}
              kind={
                !m.isFromSupport
                  ? 'visitor'
                  : m.nameOfSender === me.name
                    ? 'own'
                    : m.nameOfSender === botName
                      ? 'robot'
                      : 'agent'
              }
              colour={!m.isFromSupport ? (visitor?.id ?? '') : m.nameOfSender === me.name ? me.id : m.nameOfSender}
              visitor={visitor?.name ?? ''}
              now={now}
              show={show}
            />
          ))}
          {pending.map((p) => (
            <PendingRow key={p.key} item={p} conversation={conversation} />
          ))}
        </div>
      </div>
      {unseen > 0 && (
        <button type="button" class="to-end" onClick={scrollToEnd}>
          <Glyph name="down" size={16} />
          {count(unseen, s.newMessages)}
        </button>
      )}
    </div>
  );
}

/** Returns the status of a message. The visitor has read all messages from support up to seenUpTo. */
const statusOf = (m: Message, seenUpTo: string): Message['status'] =>
  m.isFromSupport && m.status !== 'failed' && m.createdAt <= seenUpTo ? 'read' : m.status;
