/** What an agent does with the open chat: take over, hand back, assign and close; and the keys for it. ConversationView uses both. */
import { useEffect, useState } from 'preact/hooks';
import { chats as api } from '../api/api.js';
import { messageOf } from '../api/client.js';
import type { Chat } from '../api/types.js';
import { navigate } from '../lib/router.js';
import { app } from '../state.js';
import { strings } from '../strings.js';
import { toast } from '../ui/toast.js';
import { alerts } from './alerts.js';
import { closeLater, undoClose } from './closing.js';
import type { ChatList } from './list.js';

const s = strings.inbox;

export interface ActionsConfig {
  chatId: string;
  chat: Chat | undefined;
  list: ChatList;
  /** The query of the list, to which the agent returns. */
  query: string;
  /** Called with the chat after an action has changed it. */
  take(c: Chat): void;
}

export type Actions = ReturnType<typeof useActions>;

export function useActions({ chatId, chat, list, query, take }: ActionsConfig) {
  const [busy, setBusy] = useState('');
  const search = query ? `?${query}` : '';
  const back = () => navigate(`/inbox${search}`);

  const act = async (what: string, run: () => Promise<Chat>, done?: string) => {
    if (busy) return;
    setBusy(what);
    try {
      take(await run());
      if (done) toast(done);
    } catch (err) {
      toast(messageOf(err), 'bad');
    } finally {
      setBusy('');
    }
  };
  const takeOver = () => void act('control', () => api.control(chatId, 'agent'));
  const handBack = () => void act('control', () => api.control(chatId, 'bot'), s.handedBack);
  const close = () => {
    if (!chat || chat.status === 'closed') return;
    const path = `/inbox/${chatId}${search}`;
    const send = () =>
      void api
        .close(chatId)
        .catch((err: unknown) => toast(messageOf(err), 'bad'))
        .then(() => list.restore(chatId))
        .then(() => api.get(chatId))
        .then(
          (c) => list.put(c),
          () => {},
        );
    list.hide(chat);
    closeLater(chatId, send, () => list.restore(chatId));
    toast(s.closed, 'good', { label: s.undo, act: () => undoClose(chatId) && navigate(path) });
    back();
  };
  const assign = (userId: string | null) => void act('assign', () => api.assign(chatId, userId));

  return { busy, back, takeOver, handBack, close, assign };
}

export interface KeysConfig {
  chat: Chat | undefined;
  actions: Actions;
  focusComposer(): void;
  toggleDetails(): void;
}

/** The keys of the open chat. They are off in fields, in dialogs and in menus, and where the agent has switched them off. */
export function useKeys({ chat, actions, focusComposer, toggleDetails }: KeysConfig): void {
  const me = app.value.session!.user;
  useEffect(() => {
    const keys = (e: KeyboardEvent) => {
      const at = e.target as HTMLElement;
      if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented || !alerts.value.keys || !chat) return;
      if (/^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName) || document.querySelector('dialog[open], .menu:popover-open'))
        return;
      const open = chat.status !== 'closed';
      const act = {
        r: () => focusComposer(),
        a: () => open && actions.assign(chat.assignee?.id === me.id ? null : me.id),
        t: () => open && (chat.control === 'bot' || chat.waiting ? actions.takeOver() : actions.handBack()),
        e: () => open && actions.close(),
        i: () => toggleDetails(),
      }[e.key];
      if (!act) return;
      e.preventDefault();
      act();
    };
    addEventListener('keydown', keys);
    return () => removeEventListener('keydown', keys);
  });
}
