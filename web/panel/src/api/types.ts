/**
 * The types of the panel's API. They are generated from services/panel/openapi.json; here are only names for parts of them, and types that
 * the app holds more strictly than the document.
 */
import type { Data } from '@parley/shared/message.js';
import type * as document from './generated/panel.js';

export type * from './generated/panel.js'; // the names below hide those of the document

/** A message as the panel shows it. The document's Message tells the types of messages apart, which the renderers do at run time. */
export type Message = document.PanelMessage;
export type MessageStatus = NonNullable<Message['status']>;

export interface Chat extends Omit<document.Chat, 'lastMessage' | 'question'> {
  /** Not a notice of the platform. */
  lastMessage: Message | null;
  /** The visitor's last message. */
  question: Message | null;
}

/** The editors always send all settings. */
export type ApplicationDraft = Required<document.ApplicationDraft>;

export type TemplateDraft = Required<document.TemplateDraft>;

export type Hours = NonNullable<document.Support['hours']>;
export type Day = keyof NonNullable<Hours['week']>;

export type BotKind = document.BotSettings['kind'];
export type BotVersion = document.Bot['versions'][number];
export type BotTurn = NonNullable<document.BotTest['conversation']>[number];
export type Citation = NonNullable<document.BotCall['citations']>[number];
/** A call of a tool, in a call of a model. */
export type ToolUse = NonNullable<document.BotCall['tools']>[number];

type ToolSettings = NonNullable<NonNullable<document.BotSettings['model']>['tools']>;
/** A server of tools, with those that a model may call. */
export type ToolServer = NonNullable<ToolSettings['servers']>[number];
export type AllowedTool = ToolServer['tools'][number];
export type ListedTool = document.ToolList['tools'][number];

export type DocumentFormat = document.Document['format'];
export type DocumentFetch = document.DocumentFetch;
/** A part of a document that a question has found. */
export type Passage = document.FoundPassages['passages'][number];

/** Numbers of open chats, each up to 100. */
export type Counts = document.CountChatsAnswer;

export type LetterResult = document.LetterResults['results'][number];

export interface AuditEntry extends document.AuditEntry {
  before?: Data;
  after?: Data;
}
