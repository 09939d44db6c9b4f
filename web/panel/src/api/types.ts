/** The responses of the panel's API, described in services/panel/openapi.json. */
import type { Data, Message as WidgetMessage } from '@parley/shared/message.js';

export type Role = 'operator' | 'owner' | 'developer' | 'agent';

export type Permission =
  | 'tokens'
  | 'applications.read'
  | 'applications.write'
  | 'templates.read'
  | 'templates.write'
  | 'templates.approve'
  | 'webhooks'
  | 'inbox'
  | 'people'
  | 'audit'
  | 'visitors'
  | 'streams'
  | 'companies';

export interface User {
  id: string;
  email: string;
  name: string;
  role: Role;
  companyId?: string;
  status: 'active' | 'invited' | 'disabled';
  totp: boolean;
  createdAt: string;
  lastSignInAt?: string;
  invitationExpiresAt?: string;
}

export interface Company {
  id: string;
  name: string;
}

export interface Session {
  user: User;
  company: Company | null;
  permissions: Permission[];
  csrfToken: string;
  expiresAt: string /** 0 without one-time codes. */;
  recoveryCodesLeft: number;
}

export interface Meta {
  version: string;
  widgetBaseUrl: string;
  clientBaseUrl: string;
  oidc: { name: string } | null;
}

export interface UserSession {
  id: string;
  createdAt: string;
  lastSeenAt: string;
  expiresAt: string;
  address: string;
  userAgent: string;
  current: boolean;
}

export interface Invitation {
  email: string;
  name: string;
  role: Role;
  companyName?: string;
}

export interface Token {
  id: string;
  name: string;
  prefix: string;
  createdAt: string;
  createdBy?: string;
  lastUsedAt?: string;
  expiresAt?: string;
  revokedAt?: string;
  status: 'active' | 'expired' | 'revoked';
}

export interface NewToken {
  token: Token;
  secret: string;
  replaced?: Token;
}

export type Verification = 'off' | 'session' | 'required';

export interface ApplicationDraft {
  name: string;
  botName: string;
  widgetConfigs: Data;
  allowedOrigins: string[];
  fileRetentionSeconds: number;
}

export type Day = 'monday' | 'tuesday' | 'wednesday' | 'thursday' | 'friday' | 'saturday' | 'sunday';

/** A part of a day, as HH:MM. An interval whose end is before its start ends on the next day. */
export interface Interval {
  from: string;
  to: string;
}

export interface Hours {
  timeZone: string;
  week?: Partial<Record<Day, Interval[]>>;
  dates?: { date: string; intervals: Interval[] }[];
}

/** The agent settings of an application. Without hours, agents are always available. */
export interface Support {
  hours?: Hours | undefined;
  handoverButton: boolean;
  agentsOnly: boolean;
  rating: boolean;
}

export interface Ratings {
  appId: string;
  count: number;
  average: number;
  scores: number[];
}

export interface Application extends ApplicationDraft {
  id: string;
  companyId: string;
  verification: Verification;
  support: Support;
  secrets: { createdAt: string; expiresAt?: string }[];
  version: string;
  embed: { snippet: string; csp: string };
}

export interface Parameter {
  name: string;
  default: string;
}

export interface Template {
  id: string;
  companyId: string;
  name: string;
  text: string;
  parameters: Parameter[];
  status: 'draft' | 'pending' | 'approved' | 'rejected';
  reason?: string;
}

export interface TestPush {
  text: string;
  source: string;
  wouldSend: boolean;
  problems: string[];
}

export type MessageStatus = 'accepted' | 'stored' | 'delivered' | 'read' | 'failed';

export interface Message extends WidgetMessage {
  status?: MessageStatus;
}

export interface Chat {
  id: string;
  companyId: string;
  appId?: string;
  appName?: string;
  channel: 'widget' | 'phone';
  status: 'pending' | 'active' | 'closed';
  createdAt: string;
  activityAt: string;
  visitorWroteAt?: string;
  /** Absent where agents may write at any time. */
  windowExpiresAt?: string;
  inWindow: boolean;
  closedAt?: string;
  unread: boolean;
  unreadCount: number;
  control: 'bot' | 'agent';
  controlledSince?: string;
  /** Handed over to agents, but not assigned yet. */
  waiting: boolean;
  handover?: Handover | undefined;
  rating?: { score: number; comment?: string; ratedAt: string };
  assignee: Agent | null;
  visitor: { id: string; name: string; email?: string; phone?: string; userId?: string; verifiedBy?: string };
  /** Not a notice of the platform. */
  lastMessage: Message | null;
  /** The visitor's last message. */
  question: Message | null;
}

/** Numbers of open chats, each up to 100. */
export interface Counts {
  waiting: number;
  unread: number;
  mine: number;
  attention: number;
}

/** Why a chat was handed over to agents. */
export interface Handover {
  by: 'bot' | 'visitor' | 'offline_form' | 'no_bot';
  reason?: string;
  note?: string;
  at: string;
}

export interface Agent {
  id: string;
  name: string;
  online?: boolean;
}

export interface VisitorPresence {
  online: boolean;
  lastSeenAt?: string;
}

export interface Partition {
  partition: number;
  pending: number;
  ackPending: number;
  redelivered: number;
  oldestAgeSeconds: number;
  activeAt?: string;
  read: boolean;
}

export interface Consumer extends Omit<Partition, 'partition'> {
  name: string;
  deliveredSequence: number;
  ackFloor: number;
  partitions: Partition[];
}

export interface Stream {
  name: string;
  messages: number;
  bytes: number;
  maxBytes: number;
  firstAt?: string;
  lastAt?: string;
  lastSequence: number;
  consumers: Consumer[];
}

export interface Streams {
  at: string;
  streams: Stream[];
}

export interface DeadLetter {
  sequence: number;
  time: string;
  stream: string;
  consumer: string;
  subject: string;
  originalSequence: number;
  eventId: string;
  eventType: string;
  attempts: number;
  reason: string;
  companyId?: string;
  chatId?: string;
  messageId?: string;
  headers?: Record<string, string[]>;
  payload?: unknown;
}

export interface RedriveResult {
  sequence: number;
  eventType: string;
  consumer: string;
  result: string;
  error?: string;
}

export interface AuditEntry {
  id: string;
  at: string;
  userId?: string;
  user: string;
  action: string;
  target: string;
  targetId: string;
  before?: Data;
  after?: Data;
}

export interface Visitor {
  id: string;
  appId?: string;
  name: string;
  email?: string;
  phone?: string;
  userId?: string;
}

export interface Receipt {
  id: string;
  visitorId: string;
  at: string;
  by: string;
  chats: number;
  messages: number;
  files: number;
  identities: number;
  statuses: number;
  events: number;
}

export interface WebhookEndpoint {
  id: string;
  url: string;
  description: string;
  /** Empty means all events. */
  events: string[];
  /** The names, without values. */
  headers: string[];
  ordered: boolean;
  signatures: string[];
  publicKeys: string[];
  createdAt: string;
  status: 'enabled' | 'failing' | 'disabled';
  disabledAt?: string;
  disabledReason?: string;
  failingSince?: string;
  warnings: number;
}

export interface Webhooks {
  endpoints: WebhookEndpoint[];
  types: string[];
  retentionDays: number;
  next: string | null;
}

/** An endpoint with its signing secrets, which are returned only once. */
export interface WebhookWithSecrets {
  endpoint: WebhookEndpoint;
  secrets: string[];
}

export interface Delivery {
  id: string;
  eventType: string;
  status: 'pending' | 'delivered' | 'failed';
  reason?: string;
  createdAt: string;
  nextAttemptAt?: string;
  body: string;
  attempts: {
    at: string;
    url: string;
    durationMs: number;
    statusCode?: number;
    answer?: string;
    error?: string;
    nextAttemptAt?: string;
  }[];
}
