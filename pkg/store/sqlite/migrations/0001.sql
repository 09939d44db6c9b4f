-- Times are milliseconds since 1970, UTC; NULL is the zero time. JSON of others is kept as the text that came.

CREATE TABLE companies (
  id   TEXT PRIMARY KEY,
  name TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE access_tokens (
  hash         TEXT PRIMARY KEY,
  company_id   TEXT NOT NULL,
  name         TEXT NOT NULL,
  prefix       TEXT NOT NULL,
  created_at   INTEGER,
  last_used_at INTEGER,
  expires_at   INTEGER,
  revoked_at   INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX access_tokens_company ON access_tokens (company_id, created_at, hash);

CREATE TABLE applications (
  id               TEXT PRIMARY KEY,
  company_id       TEXT NOT NULL,
  provider         TEXT NOT NULL,
  bot_name         TEXT NOT NULL,
  name             TEXT NOT NULL,
  widget_configs   TEXT NOT NULL,
  allowed_origins  TEXT,                        -- JSON array; NULL: any
  file_retention   INTEGER NOT NULL,            -- seconds
  verification     TEXT NOT NULL DEFAULT '',
  identity_secrets TEXT                         -- JSON array, newest first; NULL: none
) STRICT, WITHOUT ROWID;
CREATE INDEX applications_company ON applications (company_id, id);

CREATE TABLE templates (
  id         TEXT PRIMARY KEY,
  company_id TEXT NOT NULL,
  name       TEXT NOT NULL,
  status     TEXT NOT NULL,
  text       TEXT NOT NULL,
  parameters TEXT                               -- JSON array; NULL: none
) STRICT, WITHOUT ROWID;
CREATE INDEX templates_company ON templates (company_id, id);

CREATE TABLE visitors (
  id                TEXT PRIMARY KEY,
  company_id        TEXT NOT NULL,
  app_id            TEXT NOT NULL,
  first_name        TEXT NOT NULL,
  last_name         TEXT NOT NULL,
  email             TEXT NOT NULL,
  phone             TEXT NOT NULL,
  user_id           TEXT NOT NULL,
  verified_by       TEXT NOT NULL,
  chat_number       INTEGER NOT NULL DEFAULT 0,
  tokens_valid_from INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE identities (
  key          TEXT PRIMARY KEY,                -- scope|kind|value or scope|proved-kind|value
  chat_user_id TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE chats (
  key               INTEGER PRIMARY KEY,        -- short name within messages
  id                TEXT NOT NULL,
  company_id        TEXT NOT NULL,
  app_id            TEXT NOT NULL,
  chat_user_id      TEXT NOT NULL,
  channel           TEXT NOT NULL,
  created_at        INTEGER,
  window_started_at INTEGER,
  visitor_wrote_at  INTEGER,
  closed_at         INTEGER
) STRICT;
CREATE UNIQUE INDEX chats_id ON chats (id);
CREATE UNIQUE INDEX chats_open ON chats (chat_user_id) WHERE closed_at IS NULL;
CREATE INDEX chats_visitor ON chats (chat_user_id, created_at DESC, id);
CREATE INDEX chats_application ON chats (app_id, created_at DESC, id);
CREATE INDEX chats_company ON chats (company_id, created_at DESC, id);
CREATE INDEX chats_created ON chats (created_at DESC, id);

CREATE TABLE messages (
  chat         INTEGER NOT NULL,                -- chats.key
  created_at   INTEGER NOT NULL,
  id           TEXT NOT NULL,
  from_support INTEGER NOT NULL,                -- 1: by the company
  type         TEXT NOT NULL,
  sender       TEXT NOT NULL,
  data         TEXT NOT NULL,                   -- JSON, as it was sent
  PRIMARY KEY (chat, created_at, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX messages_id ON messages (id);

CREATE TABLE statuses (
  key            TEXT PRIMARY KEY,              -- company_id|message_id
  company_id     TEXT NOT NULL GENERATED ALWAYS AS (substr(key, 1, instr(key, '|') - 1)) VIRTUAL,
  message_id     TEXT NOT NULL GENERATED ALWAYS AS (substr(key, instr(key, '|') + 1)) VIRTUAL,
  chat_id        TEXT NOT NULL,
  accepted_at    INTEGER,
  stored_at      INTEGER,
  delivered_at   INTEGER,
  read_at        INTEGER,
  failed_at      INTEGER,
  failure_reason TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE receipts (
  chat_id         TEXT PRIMARY KEY,
  read_up_to_time INTEGER,                      -- the last message that the visitor has read: its time
  read_up_to_id   TEXT NOT NULL DEFAULT '',     -- and its id
  read_at         INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE awaited_receipts (
  chat_id     TEXT NOT NULL,
  message_id  TEXT NOT NULL,
  created_at  INTEGER NOT NULL,                 -- of the message
  undelivered INTEGER NOT NULL,                 -- 1: the sender waits for the delivery report
  unread      INTEGER NOT NULL,                 -- 1: the sender waits for the read report
  PRIMARY KEY (chat_id, message_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency_records (
  id           TEXT PRIMARY KEY,
  fingerprint  TEXT NOT NULL,
  message_id   TEXT NOT NULL,
  at           INTEGER,
  leases       INTEGER NOT NULL,
  leased_until INTEGER,
  expires_at   INTEGER,
  answer       TEXT NOT NULL                    -- empty: none yet
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_records_expiry ON idempotency_records (expires_at);

CREATE TABLE files (
  id           TEXT PRIMARY KEY,
  company_id   TEXT NOT NULL,
  app_id       TEXT NOT NULL,
  chat_user_id TEXT NOT NULL,
  sender_id    TEXT NOT NULL,
  size         INTEGER NOT NULL,
  created_at   INTEGER,
  expires_at   INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX files_visitor ON files (chat_user_id);
CREATE INDEX files_sender ON files (sender_id, expires_at, size);
CREATE INDEX files_company ON files (company_id, expires_at, size);
CREATE INDEX files_application ON files (app_id, expires_at, size);
CREATE INDEX files_expiry ON files (expires_at);
