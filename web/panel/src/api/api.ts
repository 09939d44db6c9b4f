import { readMessage, object, text, type Data } from '@parley/shared/message.js';
import type { Chunk } from '../lib/load.js';
import { client } from './client.js';
import { chunkOf, filled, MOST, SHOWN, whole, type PageAnswer } from './pages.js';
import type {
  Agent,
  Application,
  ApplicationDraft,
  AuditEntry,
  Bot,
  BotCall,
  BotSettings,
  BotTest,
  BotUsage,
  BotWithSecret,
  Chat,
  Company,
  Connection,
  Counts,
  CreateConnection,
  CreateDocument,
  CreateToken,
  CreateWebhook,
  DeadLetter,
  DeadLetterDetail,
  Delivery,
  Document,
  DocumentWithText,
  ErasureReceipt,
  FoundPassages,
  PdfText,
  Invitation,
  InvitationAcceptance,
  Invite,
  InvitedUser,
  LetterResult,
  Message,
  MessageStatus,
  Meta,
  NewSecret,
  NewToken,
  NewWebhookEndpoint,
  PasswordChange,
  Preview,
  Ranking,
  RatingSum,
  RecoveryCodes,
  Replay,
  Retention,
  Session,
  SessionEntry,
  SetRanking,
  SignIn,
  Streams,
  Support,
  Template,
  TemplateDraft,
  TemplatePreview,
  TemplateTest,
  TestPush,
  Token,
  ToolList,
  TotpOffer,
  UpdateConnection,
  UpdateWebhook,
  User,
  UserChange,
  Verification,
  Visitor,
  VisitorPresence,
  WebhookEndpoint,
  Webhooks,
} from './types.js';

type Signal = AbortSignal | undefined;

const get = <T>(path: string, query: Record<string, string | number | boolean | undefined> = {}, signal?: Signal) =>
  client.call<T>(path, { query, ...(signal && { signal }) });
const post = <T>(path: string, body: unknown = {}, headers: Record<string, string> = {}) =>
  client.call<T>(path, { method: 'POST', body, headers });
const put = <T>(path: string, body: unknown, headers: Record<string, string> = {}) =>
  client.call<T>(path, { method: 'PUT', body, headers });
const patch = <T>(path: string, body: unknown) => client.call<T>(path, { method: 'PATCH', body });
const remove = <T>(path: string, body?: unknown) =>
  client.call<T>(path, { method: 'DELETE', ...(body !== undefined && { body }) });
const id = encodeURIComponent;

type Query = Record<string, string | number | boolean | undefined>;

/** Loads the page of a list that begins at the cursor. */
const page = <T>(path: string, member: string, query: Query, cursor: string, signal?: Signal): Promise<Chunk<T>> =>
  get<PageAnswer<string, T>>(path, { limit: SHOWN, ...query, cursor }, signal).then(chunkOf(member));

/** Loads a whole list. */
const every = <T>(path: string, member: string, query: Query = {}, signal?: Signal): Promise<T[]> =>
  whole((cursor) => page<T>(path, member, { ...query, limit: MOST }, cursor, signal));

/** Loads a whole list whose answers have other members too. */
async function everyIn<K extends string, T, A extends PageAnswer<K, T>>(
  path: string,
  member: K,
  signal?: Signal,
): Promise<A> {
  let answer: A | undefined;
  const items = await whole<T>((cursor) =>
    get<A>(path, { limit: MOST, cursor }, signal).then((a) => chunkOf<K, T>(member)((answer = a))),
  );
  return { ...answer!, [member]: items };
}

/** Repeats an action on the pages of a selection, and returns all results. */
const onEvery = <K extends string, T>(path: string, member: K, body: object): Promise<T[]> =>
  whole<T>((cursor) =>
    post<PageAnswer<K, T>>(path, { ...body, ...(cursor && { cursor }) }).then(chunkOf<K, T>(member)),
  );

export const session = {
  meta: () => get<Meta>('meta'),
  current: () => get<Session>('session'),
  signIn: (body: SignIn) => post<Session>('session', body),
  signOut: () => remove<void>('session'),
  all: (signal?: Signal) => every<SessionEntry>('sessions', 'sessions', {}, signal),
  end: (session: string) => remove<void>(`sessions/${id(session)}`),
  endAll: () => remove<void>('sessions'),
  password: (body: PasswordChange) => put<Session>('password', body),
  totp: (password: string) => post<TotpOffer>('totp', { password }),
  confirmTotp: (code: string, password: string) =>
    post<RecoveryCodes>('totp/confirm', { code, password }).then((a) => a.recoveryCodes),
  recoveryCodes: (currentCode: string) =>
    post<RecoveryCodes>('totp/recovery-codes', { currentCode }).then((a) => a.recoveryCodes),
  removeTotp: (currentCode: string) => remove<void>('totp', { currentCode }),
  checkInvitation: (token: string) => post<Invitation>('invitation/check', { token }),
  acceptInvitationWithOIDC: (token: string) => post<{ location: string }>('oidc/start', { token }),
  acceptInvitation: (body: InvitationAcceptance) => post<Session>('invitation', body),
};

export const companies = {
  list: () => every<Company>('companies', 'companies'),
  create: (name: string) => post<Company>('companies', { name }),
  rename: (company: string, name: string) => patch<Company>(`companies/${id(company)}`, { name }),
};

export const tokens = {
  list: (signal?: Signal) => every<Token>('tokens', 'tokens', {}, signal),
  create: (body: CreateToken) => post<NewToken>('tokens', body),
  rotate: (token: string, overlapSeconds: number) => post<NewToken>(`tokens/${id(token)}/rotate`, { overlapSeconds }),
  revoke: (token: string) => post<Token>(`tokens/${id(token)}/revoke`),
};

/** Entries of a page of the log of calls. A call is up to 64 KiB. */
const CALLS = 20;

export const applications = {
  list: (signal?: Signal) => every<Application>('applications', 'applications', {}, signal),
  get: (app: string, signal?: Signal) => get<Application>(`applications/${id(app)}`, {}, signal),
  create: (draft: Partial<ApplicationDraft>) => post<Application>('applications', draft),
  update: (app: string, draft: ApplicationDraft, version: string) =>
    put<Application>(`applications/${id(app)}`, draft, { 'If-Match': version }),
  verification: (app: string, verification: Verification) =>
    put<Application>(`applications/${id(app)}/verification`, { verification }),
  support: (app: string, support: Support) => put<Application>(`applications/${id(app)}/support`, support),
  ratings: (signal?: Signal) =>
    everyIn<'ratings', RatingSum, { days: number; ratings: RatingSum[]; next: string | null }>(
      'ratings',
      'ratings',
      signal,
    ),
  newSecret: (app: string, overlapSeconds: number) =>
    post<NewSecret>(`applications/${id(app)}/secrets`, { overlapSeconds }),
  bot: (app: string, signal?: Signal) => get<Bot>(`applications/${id(app)}/bot`, {}, signal),
  setBotDraft: (app: string, draft: BotSettings, revision: number) =>
    put<Bot>(`applications/${id(app)}/bot`, draft, { 'If-Match': `"${revision}"` }),
  /** Puts an earlier version in force, or the draft if the version is 0. */
  publishBot: (app: string, version: number, revision: number) =>
    post<BotWithSecret>(`applications/${id(app)}/bot/publish`, { version }, { 'If-Match': `"${revision}"` }),
  rotateBotSecret: (app: string, overlapSeconds: number) =>
    post<BotWithSecret>(`applications/${id(app)}/bot/secrets`, { overlapSeconds }),
  botUsage: (app: string, signal?: Signal) => get<BotUsage>(`applications/${id(app)}/bot/usage`, {}, signal),
  /** The log of calls, or only those that found no answer in the documents. */
  botCalls: (app: string, unanswered: boolean, cursor: string, signal?: Signal): Promise<Chunk<BotCall>> => {
    const query = { limit: CALLS, ...(unanswered && { unanswered }) };
    return filled((at) => page(`applications/${id(app)}/bot/calls`, 'calls', query, at, signal), cursor);
  },
  /** Asks the server of settings that need not be saved. It answers within a minute. */
  testBot: (app: string, body: BotTest, signal?: Signal) =>
    client.call<BotCall>(`applications/${id(app)}/bot/test`, { method: 'POST', body, ...(signal && { signal }) }),
};

/** Connections to servers of language models and of tools. */
export const connections = {
  list: (signal?: Signal) => every<Connection>('connections', 'connections', {}, signal),
  create: (body: CreateConnection) => post<Connection>('connections', body),
  update: (connection: string, body: UpdateConnection) => patch<Connection>(`connections/${id(connection)}`, body),
  remove: (connection: string) => remove<void>(`connections/${id(connection)}`),
  /** Asks the server for its tools. */
  tools: (connection: string) => get<ToolList>(`connections/${id(connection)}/tools`),
};

/** Documents that the company's bots answer from. */
export const documents = {
  list: (cursor: string, signal?: Signal): Promise<Chunk<Document>> =>
    page('documents', 'documents', {}, cursor, signal),
  get: (document: string, signal?: Signal) => get<DocumentWithText>(`documents/${id(document)}`, {}, signal),
  create: (content: CreateDocument) => post<DocumentWithText>('documents', content),
  update: (document: string, content: CreateDocument, revision: number) =>
    put<DocumentWithText>(`documents/${id(document)}`, content, { 'If-Match': `"${revision}"` }),
  /** Makes the next fetch of the text due now. */
  fetch: (document: string) => post<Document>(`documents/${id(document)}/fetch`),
  remove: (document: string) => remove<void>(`documents/${id(document)}`),
  /** Returns the text of a PDF file, of which nothing is stored. */
  readPDF: (file: Blob) => post<PdfText>('documents/pdf', new Blob([file], { type: 'application/pdf' })),
  /** Returns the passages that a bot would get for a question. */
  search: (question: string) => post<FoundPassages>('documents/search', { question }).then((a) => a.passages),
};

/** How the passages of the company's documents are ranked. */
export const ranking = {
  get: (signal?: Signal) => get<Ranking>('ranking', {}, signal),
  set: (body: SetRanking, revision: number) => put<Ranking>('ranking', body, { 'If-Match': `"${revision}"` }),
};

export const templates = {
  list: (signal?: Signal) => every<Template>('templates', 'templates', {}, signal),
  get: (template: string, signal?: Signal) => get<Template>(`templates/${id(template)}`, {}, signal),
  create: (draft: TemplateDraft) => post<Template>('templates', draft),
  update: (template: string, draft: TemplateDraft) => put<Template>(`templates/${id(template)}`, draft),
  submit: (template: string) => post<Template>(`templates/${id(template)}/submit`),
  approve: (template: string) => post<Template>(`templates/${id(template)}/approve`),
  reject: (template: string, reason: string) => post<Template>(`templates/${id(template)}/reject`, { reason }),
  history: (template: string, signal?: Signal) =>
    every<AuditEntry>(`templates/${id(template)}/history`, 'entries', {}, signal),
  preview: (body: TemplatePreview, signal?: Signal) =>
    client.call<Preview>('templates/preview', {
      method: 'POST',
      body,
      ...(signal && { signal }),
    }),
  test: (template: string, body: TemplateTest) => post<TestPush>(`templates/${id(template)}/test`, body),
};

/** Parses a message. Returns undefined when it is malformed. */
export function messageFrom(value: unknown): Message | undefined {
  const m = readMessage(value);
  const status = text(object(value).status) as MessageStatus;
  return m && { ...m, ...(status && { status }) };
}

const chatFrom = (c: Chat): Chat => ({
  ...c,
  lastMessage: messageFrom(c.lastMessage) ?? null,
  question: messageFrom(c.question) ?? null,
});

function mustBeMessage(value: unknown): Message {
  const m = messageFrom(value);
  if (!m) throw new Error('malformed message');
  return m;
}

export interface ChatFilter {
  appId?: string;
  status?: string;
  q?: string;
  unread?: boolean;
  waiting?: boolean;
  visitorId?: string;
  assignee?: string;
  control?: string;
}

export const chats = {
  list: (f: ChatFilter, cursor: string, signal?: Signal): Promise<Chunk<Chat>> =>
    page<Chat>(
      'chats',
      'chats',
      { ...f, unread: f.unread || undefined, waiting: f.waiting || undefined },
      cursor,
      signal,
    ).then((a) => ({ ...a, items: a.items.map(chatFrom) })),
  /** All chats of a visitor. */
  ofVisitor: (visitorId: string, signal?: Signal) =>
    every<Chat>('chats', 'chats', { visitorId }, signal).then((all) => all.map(chatFrom)),
  counts: () => get<Counts>('chats/counts'),
  get: (chat: string, signal?: Signal) => get<Chat>(`chats/${id(chat)}`, {}, signal).then(chatFrom),
  messages: (chat: string, cursor: string, signal?: Signal) =>
    get<{ messages: unknown[]; next: string | null; seenUpTo?: string }>(
      `chats/${id(chat)}/messages`,
      { cursor, limit: SHOWN },
      signal,
    ).then((a) => ({
      messages: a.messages.map(messageFrom).filter((m): m is Message => !!m),
      more: a.next !== null,
      seenUpTo: a.seenUpTo ?? '',
    })),
  send: (chat: string, body: Data, key: string) =>
    post<unknown>(`chats/${id(chat)}/messages`, body, { 'Idempotency-Key': key }).then(mustBeMessage),
  sendFile: (
    chat: string,
    file: Blob,
    name: string,
    caption: string,
    key: string,
    progress: (share: number) => void,
  ) => {
    const form = new FormData();
    if (caption) form.append('caption', caption);
    form.append('file', file, name);
    const { promise, abort } = client.upload<unknown>(
      `chats/${id(chat)}/files`,
      form,
      { 'Idempotency-Key': key },
      progress,
    );
    return { promise: promise.then(mustBeMessage), abort };
  },
  control: (chat: string, control: 'bot' | 'agent') =>
    put<Chat>(`chats/${id(chat)}/control`, { control }).then(chatFrom),
  assign: (chat: string, userId: string | null) => put<Chat>(`chats/${id(chat)}/assignee`, { userId }).then(chatFrom),
  close: (chat: string) => post<Chat>(`chats/${id(chat)}/close`).then(chatFrom),
  read: (chat: string, upTo: string) => post<void>(`chats/${id(chat)}/read`, { upTo }),
  presence: (chat: string) => post<{ visitor?: VisitorPresence }>(`chats/${id(chat)}/presence`),
  typing: (chat: string) => post<void>(`chats/${id(chat)}/typing`),
  agents: (signal?: Signal) => every<Agent>('agents', 'agents', {}, signal),
};

/** Dead letters: those with the sequences, or else those that match the stream and the consumer. */
export interface DeadLetters {
  sequences?: number[];
  stream?: string;
  consumer?: string;
}

/** The API's maximum of dead letters of one request. */
const LETTERS = 1000;

/** Acts on dead letters, as many at a time as the API takes. */
async function onLetters(action: 'redrive' | 'drop', letters: DeadLetters, dryRun: boolean): Promise<LetterResult[]> {
  const act = (chosen: DeadLetters) =>
    onEvery<'results', LetterResult>(`dead-letters/${action}`, 'results', { ...chosen, dryRun });
  const { sequences } = letters;
  if (!sequences) return act(letters);
  const results: LetterResult[] = [];
  for (let i = 0; i < sequences.length; i += LETTERS)
    results.push(...(await act({ ...letters, sequences: sequences.slice(i, i + LETTERS) })));
  return results;
}

export const streams = {
  list: (signal?: Signal) => get<Streams>('streams', {}, signal),
  deadLetters: (
    f: { stream?: string; consumer?: string },
    cursor: string,
    signal?: Signal,
  ): Promise<Chunk<DeadLetter>> => page('dead-letters', 'letters', f, cursor, signal),
  deadLetter: (sequence: number, signal?: Signal) => get<DeadLetterDetail>(`dead-letters/${sequence}`, {}, signal),
  redrive: (letters: DeadLetters, dryRun: boolean) => onLetters('redrive', letters, dryRun),
  drop: (letters: DeadLetters, dryRun: boolean) => onLetters('drop', letters, dryRun),
  trace: (message: string, signal?: Signal) => get<Data>(`trace/${id(message)}`, {}, signal),
};

export const people = {
  users: (signal?: Signal) => every<User>('users', 'users', {}, signal),
  /** The operators of the installation. Operators belong to no company. */
  operators: (signal?: Signal) =>
    every<User>('users', 'users', { companyId: '' }, signal).then((all) => all.filter((u) => u.role === 'operator')),
  invite: (body: Invite) =>
    client.call<InvitedUser>('users', {
      method: 'POST',
      body,
      ...(body.role === 'operator' && { query: { companyId: '' } }),
    }),
  inviteAgain: (user: string) => post<InvitedUser>(`users/${id(user)}/invitation`),
  change: (user: string, body: UserChange) => patch<User>(`users/${id(user)}`, body),
  remove: (user: string) => remove<void>(`users/${id(user)}`),
  sessions: (user: string, signal?: Signal) =>
    every<SessionEntry>(`users/${id(user)}/sessions`, 'sessions', {}, signal),
  endSessions: (user: string) => remove<void>(`users/${id(user)}/sessions`),
  audit: (target: string, cursor: string, signal?: Signal): Promise<Chunk<AuditEntry>> =>
    page('audit', 'entries', { target }, cursor, signal),
  visitors: (q: string, cursor: string, signal?: Signal): Promise<Chunk<Visitor>> =>
    filled((at) => page('visitors', 'visitors', { q }, at, signal), cursor),
  exportUrl: (visitor: string) => client.url(`visitors/${id(visitor)}/export`),
  erase: (visitor: string) => post<ErasureReceipt>(`visitors/${id(visitor)}/erase`, { confirm: visitor }),
};

export const webhooks = {
  list: (signal?: Signal) => everyIn<'endpoints', WebhookEndpoint, Webhooks>('webhooks', 'endpoints', signal),
  create: (draft: CreateWebhook) => post<NewWebhookEndpoint>('webhooks', draft),
  update: (endpoint: string, draft: UpdateWebhook) => patch<WebhookEndpoint>(`webhooks/${id(endpoint)}`, draft),
  remove: (endpoint: string) => remove<void>(`webhooks/${id(endpoint)}`),
  rotate: (endpoint: string, overlapSeconds: number) =>
    post<NewWebhookEndpoint>(`webhooks/${id(endpoint)}/rotate`, { overlapSeconds }),
  enable: (endpoint: string) => post<WebhookEndpoint>(`webhooks/${id(endpoint)}/enable`),
  disable: (endpoint: string) => post<WebhookEndpoint>(`webhooks/${id(endpoint)}/disable`),
  test: (endpoint: string) => post<Delivery>(`webhooks/${id(endpoint)}/test`),
  retention: (retentionDays: number) =>
    put<Retention>('webhooks/retention', { retentionDays }).then((a) => a.retentionDays),
  deliveries: (
    endpoint: string,
    f: { status?: string; eventType?: string },
    cursor: string,
    signal?: Signal,
  ): Promise<Chunk<Delivery>> =>
    filled((at) => page(`webhooks/${id(endpoint)}/deliveries`, 'deliveries', f, at, signal), cursor),
  replay: (endpoint: string, body: Replay) =>
    onEvery<'deliveryIds', string>(`webhooks/${id(endpoint)}/replay`, 'deliveryIds', body),
};
