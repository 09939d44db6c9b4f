import { chats } from '../api/api.js';
import type { LiveEvents } from '../api/live.js';
import { navigate } from '../lib/router.js';
import { strings } from '../strings.js';
import { toast } from '../ui/toast.js';
import { chime, notifyOf } from './alerts.js';

/** Whether a change assigns a chat to a user by another one. Only an assignment has both. */
export const assigns = (e: LiveEvents['chat'], me: string): boolean =>
  e.assigneeId === me && !!e.byUserId && e.byUserId !== me && !e.closedAt;

/** Tells the user that a colleague has assigned them a chat, in any section of the panel. */
export async function showAssigned(e: LiveEvents['chat']): Promise<void> {
  const [chat, agents] = await Promise.all([chats.get(e.chatId), chats.agents()]);
  const by = agents.find((a) => a.id === e.byUserId)?.name ?? strings.inbox.somebody;
  const words = strings.inbox.assignedToYou(by, chat.visitor.name);
  toast(words, 'good', { label: strings.inbox.openChat, act: () => navigate(`/inbox/${chat.id}`) });
  chime();
  notifyOf(words, '', chat.id);
}
