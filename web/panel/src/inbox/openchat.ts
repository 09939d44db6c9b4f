/**
 * The open chat of the inbox: its record, its conversation, the presence of its visitor and of other agents. It loads them, follows the
 * live events while the chat is shown, and moves the read cursor. ConversationView renders it; actions.ts changes it.
 */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { chats as api } from '../api/api.js';
import { live } from '../api/live.js';
import type { Chat, VisitorPresence } from '../api/types.js';
import { refreshCounts } from '../counts.js';
import { useStore } from '../lib/store.js';
import { app } from '../state.js';
import { Conversation } from './conversation.js';
import { applyChat, applyRating, type ChatList } from './list.js';

/** The interval of presence updates to other agents, in milliseconds. */
const PRESENCE_INTERVAL = 20_000;

/** The interval at which relative times are updated and the presence of other agents expires. */
const CLOCK_INTERVAL = 5_000;

export function useOpenChat(chatId: string, list: ChatList) {
  const me = app.value.session!.user;
  const listed = useStore(list.state).items.find((c) => c.id === chatId);
  // A chat that the list does not hold, because of its filter for example.
  const [own, setOwn] = useState<Chat>();
  const [error, setError] = useState<unknown>();
  const [earlier, setEarlier] = useState<Chat[]>([]);
  const [now, setNow] = useState(Date.now());
  const [visitorPresence, setVisitorPresence] = useState<VisitorPresence>();
  const chat = listed ?? own;
  const visitorId = useRef('');
  visitorId.current = chat?.visitor.id ?? '';

  const conversation = useMemo(
    () =>
      new Conversation({
        chatId,
        me: me.id,
        page: (cursor, signal) => api.messages(chatId, cursor, signal),
        send: (body, key) => api.send(chatId, body, key),
        sendFile: (...args) => api.sendFile(chatId, ...args),
        sent: (message) => {
          list.onMessage({ chatId, message });
          void refresh(); // the first reply takes the chat over from the bot
        },
      }),
    [],
  );
  const state = useStore(conversation.state);

  const take = (c: Chat) => {
    setOwn(c);
    if (list.find(c.id) || list.state.value.ready) list.put(c);
  };
  const refresh = () =>
    api.get(chatId).then(
      (c) => {
        setError(undefined);
        take(c);
      },
      (err: unknown) => setError(err),
    );

  const lastRead = useRef('');
  const markRead = () => {
    const newest = conversation.state.value.messages.findLast((m) => !m.isFromSupport);
    if (!newest || !document.hasFocus() || document.hidden || newest.id === lastRead.current) return;
    lastRead.current = newest.id;
    api.read(chatId, newest.createdAt).then(
      () => {
        list.onRead({ chatId });
        refreshCounts();
      },
      () => (lastRead.current = ''),
    );
  };

  useEffect(() => {
    void refresh();
    void conversation.load().then(markRead);
    const sendPresence = () =>
      void api.presence(chatId).then(
        (a) => setVisitorPresence(a.visitor),
        () => {},
      );
    sendPresence();
    const pulse = setInterval(sendPresence, PRESENCE_INTERVAL);
    const clock = setInterval(() => {
      conversation.expire();
      setNow(Date.now());
    }, CLOCK_INTERVAL);
    const stops = [
      live.on('message', (e) => {
        if (e.chatId !== chatId) return;
        conversation.onMessage(e.message);
        if (!e.message.isFromSupport) setVisitorPresence((t) => t && { online: true });
        markRead();
      }),
      live.on('chat', (e) => {
        if (e.chatId !== chatId) return;
        setOwn((c) => c && applyChat(c, e, list.config.agentName));
      }),
      live.on('rated', (e) => e.chatId === chatId && setOwn((c) => c && applyRating(c, e))),
      live.on('presence', (e) => e.chatId === chatId && conversation.onPresence(e)),
      live.on('status', (e) => conversation.onStatus(e.messageId, e.status)),
      live.on('seen', (e) => e.chatId === chatId && conversation.onSeen(e.upTo)),
      live.on('typing', (e) => {
        if (e.visitorId !== visitorId.current) return;
        conversation.onTyping(e);
        if (e.side === 'visitor') setVisitorPresence((t) => t && { online: true });
      }),
      live.state.subscribe((state) => state === 'live' && sendPresence()),
      live.on('reset', () => {
        void conversation.load();
        void refresh();
      }),
    ];
    addEventListener('focus', markRead);
    return () => {
      stops.forEach((stop) => stop());
      clearInterval(pulse);
      clearInterval(clock);
      removeEventListener('focus', markRead);
      conversation.stop();
    };
  }, []);

  useEffect(() => {
    const visitor = chat?.visitor.id;
    if (!visitor) return;
    const run = new AbortController();
    api.ofVisitor(visitor, run.signal).then(
      (all) => setEarlier(all.filter((c) => c.id !== chatId)),
      () => {},
    );
    return () => run.abort();
  }, [chat?.visitor.id]);

  // A list requested before the chat was read may still mark the chat as unread.
  useEffect(() => {
    if (
      listed?.unread &&
      lastRead.current &&
      lastRead.current === conversation.state.value.messages.findLast((m) => !m.isFromSupport)?.id
    )
      list.onRead({ chatId });
  }, [listed?.unread]);

  return { chat, error, conversation, state, earlier, visitorPresence, now, take, refresh };
}
