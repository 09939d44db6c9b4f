import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assigns } from '../src/inbox/assigned.js';
import { closeLater, finishAll, undoClose, UNDO } from '../src/inbox/closing.js';
import { ChatList, matches, insertSorted } from '../src/inbox/list.js';
import { ApiError } from '../src/api/client.js';
import type { Chat, Message } from '../src/api/types.js';

const at = (minute: number) => new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString();

function chat(id: string, minute: number, more: Partial<Chat> = {}): Chat {
  return {
    id,
    companyId: 'c',
    appId: 'app',
    channel: 'widget',
    status: 'active',
    createdAt: at(0),
    activityAt: at(minute),
    inWindow: true,
    unread: false,
    unreadCount: 0,
    control: 'bot',
    waiting: false,
    assignee: null,
    visitor: { id: `v${id}`, name: `Visitor ${id}` },
    lastMessage: null,
    question: null,
    ...more,
  };
}

const message = (id: string, minute: number, isFromSupport = false): Message => ({
  id,
  createdAt: at(minute),
  type: 'TEXT',
  data: { text: id },
  nameOfSender: 'x',
  isFromSupport,
});

const settled = () => new Promise((done) => setImmediate(done));

async function list(pages: { items: Chat[]; next: string }[], { known = [] as Chat[], current = '' } = {}) {
  const asked: string[] = [];
  const l = new ChatList({
    load: (_, cursor) => Promise.resolve(pages[Number(cursor || 0)]!),
    get: (id) => {
      asked.push(id);
      const found = known.find((c) => c.id === id);
      return found ? Promise.resolve(found) : Promise.reject(new ApiError(404, 'CHAT_NOT_FOUND', ''));
    },
    me: 'me',
    agentName: (id) => `agent ${id}`,
    current: () => current,
    seen: () => false,
  });
  l.show({ status: 'open' });
  await settled();
  return { l, asked, ids: () => l.state.value.items.map((c) => c.id) };
}

test("a visitor's message moves its chat to the top and makes it unread; a reply does not", async () => {
  const { l, ids } = await list([{ items: [chat('a', 30), chat('b', 20), chat('c', 10)], next: '' }]);
  l.onMessage({ chatId: 'c', message: message('1', 40) });
  assert.deepEqual(ids(), ['c', 'a', 'b']);
  assert.equal(l.find('c')!.unread, true);
  l.onMessage({ chatId: 'b', message: message('2', 50, true) });
  assert.deepEqual(ids(), ['c', 'a', 'b']);
  assert.equal(l.find('b')!.lastMessage!.id, '2');
  assert.equal(l.find('b')!.unread, false);
  l.onRead({ chatId: 'c' });
  assert.equal(l.find('c')!.unread, false);
});

test("a visitor's message is counted once, also after a reply that is newer", async () => {
  const { l } = await list([
    {
      items: [
        chat('a', 10, {
          visitorWroteAt: at(10),
          unread: true,
          unreadCount: 1,
          lastMessage: message('reply', 12, true),
        }),
      ],
      next: '',
    },
  ]);
  l.onMessage({ chatId: 'a', message: message('1', 10) });
  assert.equal(l.find('a')!.unreadCount, 1, 'the response already counts this message');
  l.onMessage({ chatId: 'a', message: message('2', 11) });
  l.onMessage({ chatId: 'a', message: message('2', 11) });
  assert.equal(l.find('a')!.unreadCount, 2);
  assert.equal(l.find('a')!.lastMessage!.id, 'reply');
});

test('a chat that is not in the list is requested once', async () => {
  const { l, asked, ids } = await list([{ items: [chat('a', 30)], next: '' }], { known: [chat('n', 60)] });
  l.onMessage({ chatId: 'n', message: message('1', 60) });
  l.onRegistered({ appId: 'app', chatId: 'n', visitorId: 'v' });
  await settled();
  assert.deepEqual(asked, ['n']);
  assert.deepEqual(ids(), ['n', 'a']);
  assert.equal(l.find('n')!.lastMessage?.id, '1', 'the event is applied, because the response may be older');
  assert.equal(l.find('n')!.unread, true);
});

test('an event while the first page loads is not lost, although the page is older', async () => {
  const known = [chat('n', 60)];
  const { l, ids } = await list([{ items: [chat('a', 30), chat('b', 20)], next: '' }], { known });
  l.reload();
  l.onRegistered({ appId: 'app', chatId: 'n', visitorId: 'v' });
  l.onMessage({ chatId: 'b', message: message('1', 70) });
  await settled();
  assert.deepEqual(ids(), ['b', 'n', 'a']);
  assert.equal(l.find('b')!.unreadCount, 1);
});

test('a chat that could not be loaded comes with the list, one that is not visible does not reload it', async () => {
  let loads = 0;
  let reachable = true;
  const l = new ChatList({
    load: () => Promise.resolve({ items: ++loads === 1 ? [] : [chat('n', 60)], next: '' }),
    get: (id) =>
      Promise.reject(id === 'n' && !reachable ? new ApiError(503, 'UNAVAILABLE', '') : new ApiError(404, '', '')),
    me: 'me',
    agentName: () => '',
    current: () => '',
    seen: () => false,
  });
  l.show({});
  await settled();
  l.onRegistered({ appId: 'app', chatId: 'foreign', visitorId: 'v' });
  await settled();
  assert.equal(loads, 1);
  reachable = false;
  l.onRegistered({ appId: 'app', chatId: 'n', visitorId: 'v' });
  await settled();
  assert.equal(loads, 2);
  assert.equal(l.find('n')!.id, 'n');
});

test('a chat that matches later has what events have told before', async () => {
  const { l, asked } = await list([{ items: [], next: '' }], { known: [chat('n', 0)] }); // the server lacks the message
  l.show({ waiting: true });
  await settled();
  l.onMessage({ chatId: 'n', message: message('1', 60) });
  await settled();
  assert.equal(l.find('n'), undefined);
  l.onChat({ chatId: 'n', control: 'agent', handover: { by: 'no_bot', reason: '', note: '', at: at(61) } });
  await settled();
  assert.equal(l.find('n')!.question!.id, '1');
  assert.deepEqual(asked, ['n'], 'it is requested once');
});

test('a chat that no longer matches leaves the list, unless it is open', async () => {
  const first = await list([{ items: [chat('a', 30), chat('b', 20)], next: '' }]);
  first.l.onChat({ chatId: 'b', control: 'agent', assigneeId: 'x', closedAt: at(50) });
  assert.deepEqual(first.ids(), ['a']);
  const second = await list([{ items: [chat('a', 30), chat('b', 20)], next: '' }], { current: 'b' });
  second.l.onChat({ chatId: 'b', control: 'agent', assigneeId: 'x', closedAt: at(50) });
  assert.deepEqual(second.ids(), ['a', 'b']);
  assert.equal(second.l.find('b')!.status, 'closed');
  assert.deepEqual(second.l.find('b')!.assignee, { id: 'x', name: 'agent x' });
});

test('pages are joined without duplicates, and short pages load the next one', async () => {
  const { l, ids } = await list([
    { items: [chat('a', 30), chat('b', 20)], next: '1' },
    { items: [chat('b', 20), chat('c', 10)], next: '' },
  ]);
  await settled();
  assert.deepEqual(ids(), ['a', 'b', 'c']);
  assert.equal(l.state.value.next, '');
});

test('filters', () => {
  const c = chat('a', 1, { assignee: { id: 'me', name: 'Me' } });
  assert.ok(matches(c, { status: 'open', assignee: 'me' }, 'me'));
  assert.ok(!matches(c, { assignee: 'none' }, 'me'));
  assert.ok(!matches(c, { unread: true }, 'me'));
  assert.ok(!matches({ ...c, status: 'closed' }, { status: 'open' }, 'me'));
  assert.ok(matches({ ...c, status: 'pending' }, { status: 'open' }, 'me'));
  assert.deepEqual(
    insertSorted([chat('a', 3), chat('b', 1)], chat('c', 2)).map((x) => x.id),
    ['a', 'c', 'b'],
  );
});

test('a rating is shown at once, and the latest rating wins', async () => {
  const { l } = await list([{ items: [chat('a', 30), chat('b', 20)], next: '' }]);
  const rated = (score: number, minute: number) =>
    l.onRated({ chatId: 'b', appId: 'app', rating: { score, ratedAt: at(minute) } });
  rated(2, 31);
  rated(4, 33);
  rated(2, 31); // delivered again after a reconnect
  assert.equal(l.find('b')!.rating?.score, 4);
});

test("waiting chats are sorted by their wait, and keep the visitor's question", async () => {
  const waits = (id: string, since: number) =>
    chat(id, 30, {
      control: 'agent',
      waiting: true,
      controlledSince: at(since),
      visitorWroteAt: at(1),
      question: message('question', 1),
    });
  const { l, ids } = await list([{ items: [waits('a', 10)], next: '' }], { known: [waits('b', 5)] });
  l.show({ waiting: true });
  await settled();
  l.onMessage({ chatId: 'b', message: message('2', 40) });
  await settled();
  assert.deepEqual(ids(), ['b', 'a'], 'the longest wait is first, although the other wrote last');
  const notice: Message = { ...message('n', 50, true), data: { text: 'You are being connected.', notice: 'handover' } };
  l.onMessage({ chatId: 'a', message: notice });
  assert.equal(l.find('a')!.lastMessage, null, 'a notice is not a preview');
  assert.equal(l.find('a')!.question!.id, 'question');
  l.onChat({ chatId: 'a', control: 'agent', assigneeId: 'me' });
  assert.deepEqual(ids(), ['b']);
});

test('a chat that is about to close is not shown, until the close is undone', async () => {
  const { l, ids } = await list([{ items: [chat('a', 30), chat('b', 20)], next: '' }]);
  l.hide(l.find('a')!);
  l.onMessage({ chatId: 'a', message: message('1', 40) });
  assert.deepEqual(ids(), ['b']);
  l.restore('a');
  assert.deepEqual(ids(), ['a', 'b']);
  assert.equal(l.find('a')!.question!.id, '1', 'changes in between are not lost');
});

test('a closed chat leaves the list of open ones when another chat is opened', async () => {
  let current = 'a';
  const l = new ChatList({
    load: () => Promise.resolve({ items: [chat('a', 30), chat('b', 20)], next: '' }),
    get: () => Promise.reject(new Error('404')),
    me: 'me',
    agentName: () => '',
    current: () => current,
    seen: () => false,
  });
  l.show({ status: 'open' });
  await settled();
  l.onChat({ chatId: 'a', control: 'agent', closedAt: at(50) });
  assert.equal(l.state.value.items.length, 2, 'the open chat stays');
  current = 'b';
  l.prune();
  assert.deepEqual(
    l.state.value.items.map((c) => c.id),
    ['b'],
  );
});

test("only another user's assignment is announced", () => {
  const e = { chatId: 'a', control: 'agent' as const, assigneeId: 'me', byUserId: 'bob' };
  assert.equal(assigns(e, 'me'), true);
  assert.equal(assigns({ ...e, byUserId: 'me' }, 'me'), false);
  assert.equal(assigns({ ...e, assigneeId: 'bob' }, 'me'), false);
  assert.equal(assigns({ ...e, closedAt: at(1) }, 'me'), false);
});

test('a close is sent after a while, at once when the page is left, and not after an undo', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const done: string[] = [];
  for (const id of ['a', 'b', 'c'])
    closeLater(
      id,
      () => done.push(`send ${id}`),
      () => done.push(`undo ${id}`),
    );
  assert.equal(undoClose('a'), true);
  assert.equal(undoClose('a'), false);
  finishAll();
  assert.deepEqual(done, ['undo a', 'send b', 'send c']);
  closeLater(
    'd',
    () => done.push('send d'),
    () => {},
  );
  t.mock.timers.tick(UNDO);
  assert.equal(done.at(-1), 'send d');
});
