-- Calls of tools that change something, and that visitors are asked about.

CREATE TABLE bot_actions (
  id         TEXT PRIMARY KEY,                  -- of the message that asks
  company_id TEXT NOT NULL,
  app_id     TEXT NOT NULL,
  chat_id    TEXT NOT NULL,
  state      TEXT NOT NULL,
  action     TEXT NOT NULL,                     -- JSON, some 32 KiB
  expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX bot_actions_chat ON bot_actions (chat_id);
CREATE INDEX bot_actions_expiry ON bot_actions (expires_at);
