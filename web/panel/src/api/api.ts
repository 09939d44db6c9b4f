import { readMessage, object, text, type Data } from '@parley/shared/message.js';
import type { Chunk } from '../lib/load.js';
import { client } from './client.js';
import type { Delivery, WebhookWithSecrets, WebhookEndpoint, Webhooks } from './types.js';
import type {
  Agent, Application, ApplicationDraft, AuditEntry, Chat, Company, Counts, Invitation, DeadLetter, Message, MessageStatus, Meta, NewToken, Parameter, Ratings, Receipt, RedriveResult, Role, Session, UserSession, Streams,
  Support, Template, TestPush, Token, User, Verification, Visitor, VisitorPresence,
} from './types.js';

type Signal = AbortSignal | undefined;

const get = <T>(path: string, query: Record<string, string | number | boolean | undefined> = {}, signal?: Signal) => client.call<T>(path, { query, ...(signal && { signal }) });
const post = <T>(path: string, body: unknown = {}, headers: Record<string, string> = {}) => client.call<T>(path, { method: 'POST', body, headers });
const put = <T>(path: string, body: unknown, headers: Record<string, string> = {}) => client.call<T>(path, { method: 'PUT', body, headers });
const patch = <T>(path: string, body: unknown) => client.call<T>(path, { method: 'PATCH', body });
const remove = <T>(path: string, body?: unknown) => client.call<T>(path, { method: 'DELETE', ...(body !== undefined && { body }) });
const id = encodeURIComponent;

export const session = {
  meta: () => get<Meta>('meta'),
  current: () => get<Session>('session'),
  signIn: (body: { email: string; password: string; code?: string }) => post<Session>('session', body),
  signOut: () => remove<void>('session'),
  all: (signal?: Signal) => get<{ sessions: UserSession[] }>('sessions', {}, signal).then((a) => a.sessions),
  end: (session: string) => remove<void>(`sessions/${id(session)}`),
  endAll: () => remove<void>('sessions'),
  password: (body: { current: string; new: string }) => put<Session>('password', body),
  totp: (password: string) => post<{ secret: string; uri: string }>('totp', { password }),
  confirmTotp: (code: string, password: string) => post<{ recoveryCodes: string[] }>('totp/confirm', { code, password }).then((a) => a.recoveryCodes),
  recoveryCodes: (currentCode: string) => post<{ recoveryCodes: string[] }>('totp/recovery-codes', { currentCode }).then((a) => a.recoveryCodes),
  removeTotp: (currentCode: string) => remove<void>('totp', { currentCode }),
  checkInvitation: (token: string) => post<Invitation>('invitation/check', { token }),
  acceptInvitation: (body: { token: string; name: string; password: string }) => post<Session>('invitation', body),
};

export const companies = {
  list: () => get<{ companies: Company[] }>('companies').then((a) => a.companies),
  create: (name: string) => post<Company>('companies', { name }),
  rename: (company: string, name: string) => patch<Company>(`companies/${id(company)}`, { name }),
};

export const tokens = {
  list: (signal?: Signal) => get<{ tokens: Token[] }>('tokens', {}, signal).then((a) => a.tokens),
  create: (body: { name: string; expiresAt?: string }) => post<NewToken>('tokens', body),
  rotate: (token: string, overlapSeconds: number) => post<NewToken>(`tokens/${id(token)}/rotate`, { overlapSeconds }),
  revoke: (token: string) => post<Token>(`tokens/${id(token)}/revoke`),
};

export const applications = {
  list: (signal?: Signal) => get<{ applications: Application[] }>('applications', {}, signal).then((a) => a.applications),
  get: (app: string, signal?: Signal) => get<Application>(`applications/${id(app)}`, {}, signal),
  create: (draft: Partial<ApplicationDraft>) => post<Application>('applications', draft),
  update: (app: string, draft: ApplicationDraft, version: string) => put<Application>(`applications/${id(app)}`, draft, { 'If-Match': version }),
  verification: (app: string, verification: Verification) => put<Application>(`applications/${id(app)}/verification`, { verification }),
  support: (app: string, support: Support) => put<Application>(`applications/${id(app)}/support`, support),
  ratings: (signal?: Signal) => get<{ days: number; ratings: Ratings[] }>('ratings', {}, signal),
  newSecret: (app: string, overlapSeconds: number) => post<{ application: Application; secret: string }>(`applications/${id(app)}/secrets`, { overlapSeconds }),
};

export interface TemplateDraft { name: string; text: string; parameters: Parameter[] }

export const templates = {
  list: (signal?: Signal) => get<{ templates: Template[] }>('templates', {}, signal).then((a) => a.templates),
  get: (template: string, signal?: Signal) => get<Template>(`templates/${id(template)}`, {}, signal),
  create: (draft: TemplateDraft) => post<Template>('templates', draft),
  update: (template: string, draft: TemplateDraft) => put<Template>(`templates/${id(template)}`, draft),
  submit: (template: string) => post<Template>(`templates/${id(template)}/submit`),
  approve: (template: string) => post<Template>(`templates/${id(template)}/approve`),
  reject: (template: string, reason: string) => post<Template>(`templates/${id(template)}/reject`, { reason }),
  history: (template: string, signal?: Signal) => get<{ entries: AuditEntry[] }>(`templates/${id(template)}/history`, {}, signal).then((a) => a.entries),
  preview: (body: { text: string; parameters: Parameter[]; username?: string; values: Record<string, string> }, signal?: Signal) =>
    client.call<{ text: string; missing: string[] }>('templates/preview', { method: 'POST', body, ...(signal && { signal }) }),
  test: (template: string, body: { source: string; username?: string; values: Record<string, string> }) => post<TestPush>(`templates/${id(template)}/test`, body),
};

/** Parses a message. Returns undefined when it is malformed. */
export function messageFrom(value: unknown): Message | undefined {
  const m = readMessage(value);
  const status = text(object(value).status) as MessageStatus;
  return m && { ...m, ...(status && { status }) };
}

const chatFrom = (c: Chat): Chat => ({ ...c, lastMessage: messageFrom(c.lastMessage) ?? null, question: messageFrom(c.question) ?? null });

function mustBeMessage(value: unknown): Message {
  const m = messageFrom(value);
  if (!m) throw new Error('malformed message');
  return m;
}

export interface ChatFilter { appId?: string; status?: string; q?: string; unread?: boolean; waiting?: boolean; visitorId?: string; assignee?: string; control?: string }

export const chats = {
  list: (f: ChatFilter, cursor: string, signal?: Signal): Promise<Chunk<Chat>> =>
    get<{ chats: Chat[]; next: string | null }>('chats', { ...f, unread: f.unread || undefined, waiting: f.waiting || undefined, limit: 50, cursor }, signal).then((a) => ({ items: a.chats.map(chatFrom), next: a.next ?? '' })),
  counts: () => get<Counts>('chats/counts'),
  get: (chat: string, signal?: Signal) => get<Chat>(`chats/${id(chat)}`, {}, signal).then(chatFrom),
  messages: (chat: string, before: string, signal?: Signal) =>
    get<{ messages: unknown[]; more: boolean; seenUpTo?: string }>(`chats/${id(chat)}/messages`, { before, limit: 50 }, signal).then((a) => ({ messages: a.messages.map(messageFrom).filter((m): m is Message => !!m), more: a.more, seenUpTo: a.seenUpTo ?? '' })),
  send: (chat: string, body: Data, key: string) => post<unknown>(`chats/${id(chat)}/messages`, body, { 'Idempotency-Key': key }).then(mustBeMessage),
  sendFile: (chat: string, file: Blob, name: string, caption: string, key: string, progress: (share: number) => void) => {
    const form = new FormData();
    if (caption) form.append('caption', caption);
    form.append('file', file, name);
    const { promise, abort } = client.upload<unknown>(`chats/${id(chat)}/files`, form, { 'Idempotency-Key': key }, progress);
    return { promise: promise.then(mustBeMessage), abort };
  },
  control: (chat: string, control: 'bot' | 'agent') => put<Chat>(`chats/${id(chat)}/control`, { control }).then(chatFrom),
  assign: (chat: string, userId: string | null) => put<Chat>(`chats/${id(chat)}/assignee`, { userId }).then(chatFrom),
  close: (chat: string) => post<Chat>(`chats/${id(chat)}/close`).then(chatFrom),
  read: (chat: string, upTo: string) => post<void>(`chats/${id(chat)}/read`, { upTo }),
  presence: (chat: string) => post<{ visitor?: VisitorPresence }>(`chats/${id(chat)}/presence`),
  typing: (chat: string) => post<void>(`chats/${id(chat)}/typing`),
  agents: (signal?: Signal) => get<{ agents: Agent[] }>('agents', {}, signal).then((a) => a.agents),
};

export interface RedriveBody { sequences?: number[]; stream?: string; consumer?: string; dryRun: boolean }

export const streams = {
  list: (signal?: Signal) => get<Streams>('streams', {}, signal),
  deadLetters: (f: { stream?: string; consumer?: string }, cursor: string, signal?: Signal): Promise<Chunk<DeadLetter>> =>
    get<{ letters: DeadLetter[]; next: number | null }>('dead-letters', { ...f, after: cursor, limit: 50 }, signal).then((a) => ({ items: a.letters, next: a.next === null ? '' : String(a.next) })),
  deadLetter: (sequence: number, signal?: Signal) => get<DeadLetter>(`dead-letters/${sequence}`, {}, signal),
  redrive: (body: RedriveBody) => post<{ dryRun: boolean; results: RedriveResult[] }>('dead-letters/redrive', body),
  drop: (body: { sequences: number[]; dryRun: boolean }) => post<{ dryRun: boolean; results: RedriveResult[] }>('dead-letters/drop', body),
  trace: (message: string, signal?: Signal) => get<Data>(`trace/${id(message)}`, {}, signal),
};

export const people = {
  users: (signal?: Signal) => get<{ users: User[] }>('users', {}, signal).then((a) => a.users),
  /** The operators of the installation. Operators belong to no company. */
  operators: (signal?: Signal) => get<{ users: User[] }>('users', { companyId: '' }, signal).then((a) => a.users.filter((u) => u.role === 'operator')),
  invite: (body: { email: string; name?: string; role: Role }) => client.call<{ user: User; invitationUrl: string }>('users', { method: 'POST', body, ...(body.role === 'operator' && { query: { companyId: '' } }) }),
  inviteAgain: (user: string) => post<{ user: User; invitationUrl: string }>(`users/${id(user)}/invitation`),
  change: (user: string, body: { name?: string; role?: Role; disabled?: boolean }) => patch<User>(`users/${id(user)}`, body),
  remove: (user: string) => remove<void>(`users/${id(user)}`),
  sessions: (user: string, signal?: Signal) => get<{ sessions: UserSession[] }>(`users/${id(user)}/sessions`, {}, signal).then((a) => a.sessions),
  endSessions: (user: string) => remove<void>(`users/${id(user)}/sessions`),
  audit: (target: string, cursor: string, signal?: Signal): Promise<Chunk<AuditEntry>> =>
    get<{ entries: AuditEntry[]; next: string | number | null }>('audit', { target, before: cursor, limit: 50 }, signal).then((a) => ({ items: a.entries, next: a.next === null ? '' : String(a.next) })),
  visitors: (q: string, signal?: Signal) => get<{ visitors: Visitor[] }>('visitors', { q, limit: 20 }, signal).then((a) => a.visitors),
  exportUrl: (visitor: string) => client.url(`visitors/${id(visitor)}/export`),
  erase: (visitor: string) => post<Receipt>(`visitors/${id(visitor)}/erase`, { confirm: visitor }),
};

export interface WebhookDraft { url: string; description: string; events: string[]; ordered: boolean; headers?: Record<string, string>; signatures?: string[] }

export const webhooks = {
  list: (signal?: Signal) => get<Webhooks>('webhooks', {}, signal),
  create: (draft: WebhookDraft) => post<WebhookWithSecrets>('webhooks', draft),
  update: (endpoint: string, draft: WebhookDraft) => patch<WebhookEndpoint>(`webhooks/${id(endpoint)}`, draft),
  remove: (endpoint: string) => remove<void>(`webhooks/${id(endpoint)}`),
  rotate: (endpoint: string, overlapSeconds: number) => post<WebhookWithSecrets>(`webhooks/${id(endpoint)}/rotate`, { overlapSeconds }),
  enable: (endpoint: string) => post<WebhookEndpoint>(`webhooks/${id(endpoint)}/enable`),
  disable: (endpoint: string) => post<WebhookEndpoint>(`webhooks/${id(endpoint)}/disable`),
  test: (endpoint: string) => post<Delivery>(`webhooks/${id(endpoint)}/test`),
  retention: (retentionDays: number) => put<{ retentionDays: number }>('webhooks/retention', { retentionDays }).then((a) => a.retentionDays),
  deliveries: (endpoint: string, f: { status?: string; eventType?: string }, before: string, signal?: Signal): Promise<Chunk<Delivery>> =>
    get<{ deliveries: Delivery[]; next: string | null }>(`webhooks/${id(endpoint)}/deliveries`, { ...f, before, limit: 50 }, signal).then((a) => ({ items: a.deliveries, next: a.next ?? '' })),
  replay: (endpoint: string, body: { id?: string; status?: string; eventType?: string; dryRun?: boolean }) => post<{ deliveryIds: string[] }>(`webhooks/${id(endpoint)}/replay`, body).then((a) => a.deliveryIds),
};
