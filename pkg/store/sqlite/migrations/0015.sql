-- What bots use, and the log of the calls of their servers.

CREATE TABLE bot_usage (
  app_id       TEXT NOT NULL,
  chat_user_id TEXT NOT NULL,                   -- '': all visitors
  day          INTEGER NOT NULL,                -- its beginning
  questions    INTEGER NOT NULL,
  tokens       INTEGER NOT NULL,
  expires_at   INTEGER NOT NULL,
  PRIMARY KEY (app_id, chat_user_id, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX bot_usage_visitor ON bot_usage (chat_user_id) WHERE chat_user_id <> '';
CREATE INDEX bot_usage_expiry ON bot_usage (expires_at);

CREATE TABLE bot_calls (
  id         TEXT PRIMARY KEY,                  -- UUIDv7
  company_id TEXT NOT NULL,
  app_id     TEXT NOT NULL,
  chat_id    TEXT NOT NULL,                     -- '': none
  call       TEXT NOT NULL,                     -- JSON, some 64 KiB
  expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX bot_calls_application ON bot_calls (app_id, id);
CREATE INDEX bot_calls_chat ON bot_calls (chat_id) WHERE chat_id <> '';
CREATE INDEX bot_calls_expiry ON bot_calls (expires_at);
