import { useMemo, useRef, useState } from 'preact/hooks';
import type { Render } from '@parley/shared/render/content.js';
import { Markdown } from '@parley/shared/render/markdown.js';
import { throttle } from '@parley/shared/typing.js';
import { chats as api } from '../api/api.js';
import { isStatus } from '../api/client.js';
import type { Agent, Application, Message } from '../api/types.js';
import { count, formatBytes } from '../lib/format.js';
import { navigate } from '../lib/router.js';
import { app } from '../state.js';
import { strings } from '../strings.js';
import { Button } from '../ui/button.js';
import { Empty, Failed, Skeleton } from '../ui/states.js';
import { useActions, useKeys } from './actions.js';
import { Composer, type ComposerHandle } from './composer.js';
import { Details, MessageDetails } from './details.js';
import { lastAgent, Suggestion } from './earlier.js';
import { HandoverNote, Header } from './header.js';
import { Lightbox } from './lightbox.js';
import type { ChatList } from './list.js';
import { Log } from './log.js';
import { useOpenChat } from './openchat.js';

const s = strings.inbox;

/** The panel of details is open at first where the window has room for it, in CSS pixels. */
const ROOM_FOR_DETAILS = 1500;

export interface ViewProps {
  chatId: string;
  list: ChatList;
  agents: Agent[];
  apps: Application[];
  query: string;
}

/** The open chat: its head, its messages, the composer and the details. */
export function ConversationView({ chatId, list, agents, apps, query }: ViewProps) {
  const me = app.value.session!.user;
  const { chat, error, conversation, state, earlier, visitorPresence, now, take, refresh } = useOpenChat(chatId, list);
  const [shown, setShown] = useState<Message>();
  const [details, setDetails] = useState(innerWidth >= ROOM_FOR_DETAILS);
  const [picture, setPicture] = useState<{ url: string; name: string }>();
  const composer = useRef<ComposerHandle>(null);
  const sendTyping = useMemo(() => throttle(() => void api.typing(chatId).catch(() => {})), []);
  const actions = useActions({ chatId, chat, list, query, take });
  const toggleDetails = () => setDetails(!details);
  useKeys({ chat, actions, focusComposer: () => composer.current?.focus(), toggleDetails });
  const render = useMemo(() => renderOf(setPicture), []);

  if (!chat && error) return <Unavailable error={error} retry={() => void refresh()} />;
  const botName = apps.find((a) => a.id === chat?.appId)?.botName ?? '';
  const suggested = lastAgent(earlier);
  const writing = [
    ...(state.visitorTyping && chat ? [chat.visitor.name] : []),
    ...state.typing.map((name) => name || botName || s.support),
  ];
  return (
    <>
      <section class="conversation" aria-label={chat ? s.conversationWith(chat.visitor.name) : s.conversation}>
        <Header
          chat={chat}
          actions={actions}
          viewers={state.viewers.filter((v) => v.until > now)}
          visitorPresence={visitorPresence}
          now={now}
          details={details}
          toggleDetails={toggleDetails}
        />
        {chat?.handover && chat.status !== 'closed' && <HandoverNote handover={chat.handover} />}
        {chat?.waiting && suggested && (
          <Suggestion
            agent={suggested}
            me={me.id}
            online={!!agents.find((a) => a.id === suggested.id)?.online}
            assign={() => actions.assign(suggested.id)}
          />
        )}
        {!state.ready && !state.error && (
          <div class="log">
            <Skeleton rows={7} />
          </div>
        )}
        {!state.ready && !!state.error && <Failed error={state.error} retry={() => void conversation.load()} />}
        {state.ready && (
          <Log
            messages={state.messages}
            seenUpTo={state.seenUpTo}
            pending={state.pending}
            older={state.older}
            loadOlder={() => void conversation.loadOlder()}
            conversation={conversation}
            render={render}
            botName={botName}
            me={me}
            visitor={chat?.visitor}
            now={now}
            earlier={earlier}
            show={setShown}
          />
        )}
        <p class="typing" role="status">
          {writing.length > 0 && s.typing(writing.join(', '))}
        </p>
        {chat && <Composer handle={composer} chat={chat} conversation={conversation} typing={sendTyping} />}
      </section>
      {chat && details && (
        <Details
          chat={chat}
          earlier={earlier}
          agents={agents}
          assign={actions.assign}
          busy={actions.busy === 'assign'}
          now={now}
          close={() => setDetails(false)}
        />
      )}
      {shown && <MessageDetails m={shown} close={() => setShown(undefined)} />}
      {picture && <Lightbox {...picture} close={() => setPicture(undefined)} />}
    </>
  );
}

/** What the shared renderers of messages need of the panel: texts, formats and the origins of pictures. */
function renderOf(preview: (picture: { url: string; name: string }) => void): Render {
  const { widgetBaseUrl } = app.value.meta!;
  return {
    t: (key, values) => strings.render[key].replace(/\{(\w+)\}/g, (all, name: string) => String(values?.[name] ?? all)),
    n: (_, n) => count(n, strings.render.cards),
    bytes: formatBytes,
    markdown: () => Markdown,
    base: widgetBaseUrl.replace(/\/?$/, '/'),
    origins: [new URL(widgetBaseUrl).origin, location.origin],
    preview,
  };
}

/** In place of a chat that cannot be loaded. */
function Unavailable({ error, retry }: { error: unknown; retry(): void }) {
  return (
    <section class="conversation none" aria-label={s.conversation}>
      {isStatus(error, 404) ? (
        <Empty icon="search" title={s.gone} action={<Button onClick={() => navigate('/inbox')}>{s.back}</Button>}>
          {s.goneLead}
        </Empty>
      ) : (
        <Failed error={error} retry={retry} />
      )}
    </section>
  );
}
