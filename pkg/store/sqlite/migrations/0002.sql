-- The panel: users, sessions, the audit log, who answers a chat, and the inbox.

ALTER TABLE access_tokens ADD COLUMN created_by TEXT NOT NULL DEFAULT '';

ALTER TABLE chats ADD COLUMN agent_in_control INTEGER NOT NULL DEFAULT 0; -- 1: the bot is silent
ALTER TABLE chats ADD COLUMN assignee TEXT NOT NULL DEFAULT '';           -- users.id; '': nobody
ALTER TABLE chats ADD COLUMN control_changed_at INTEGER;
ALTER TABLE chats ADD COLUMN agents_read_at INTEGER;
CREATE INDEX chats_company_activity ON chats (company_id, window_started_at DESC, id);
CREATE INDEX chats_application_activity ON chats (app_id, window_started_at DESC, id);
CREATE INDEX chats_unread ON chats (company_id, window_started_at DESC, id)
  WHERE visitor_wrote_at > ifnull(agents_read_at, 0);

CREATE INDEX visitors_company ON visitors (company_id, id);
CREATE INDEX identities_visitor ON identities (chat_user_id);

CREATE TABLE users (
  id                    TEXT PRIMARY KEY,       -- follows from the e-mail address
  email                 TEXT NOT NULL,
  name                  TEXT NOT NULL,
  role                  TEXT NOT NULL,
  company_id            TEXT NOT NULL,          -- '': an operator's
  created_at            INTEGER,
  password_hash         TEXT NOT NULL,
  disabled              INTEGER NOT NULL,
  last_sign_in_at       INTEGER,
  totp_secret           TEXT NOT NULL,
  totp_pending          TEXT NOT NULL,
  totp_step             INTEGER NOT NULL,
  invitation_hash       TEXT NOT NULL,
  invitation_expires_at INTEGER,
  revision              INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX users_company ON users (company_id, id);

CREATE TABLE sessions (
  id           TEXT PRIMARY KEY,                -- hash of the cookie's secret
  user_id      TEXT NOT NULL,
  created_at   INTEGER,
  last_seen_at INTEGER,
  expires_at   INTEGER,
  address      TEXT NOT NULL,
  user_agent   TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_user ON sessions (user_id, created_at, id);
CREATE INDEX sessions_expiry ON sessions (expires_at);

CREATE TABLE audit (
  id         TEXT PRIMARY KEY,                  -- UUIDv7
  company_id TEXT NOT NULL,
  at         INTEGER,
  user_id    TEXT NOT NULL,
  user       TEXT NOT NULL,
  action     TEXT NOT NULL,
  target     TEXT NOT NULL,
  target_id  TEXT NOT NULL,
  before     TEXT NOT NULL,                     -- JSON; '': nothing
  after      TEXT NOT NULL                      -- JSON; '': nothing
) STRICT, WITHOUT ROWID;
CREATE INDEX audit_company ON audit (company_id, id);
CREATE INDEX audit_target ON audit (target_id, id);
