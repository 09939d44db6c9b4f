-- A message has the totals of its chat up to it, so that unread messages are counted by a subtraction. A new table has
-- them before the data, which may have overflow pages.

CREATE TABLE totalled_messages (
  chat          INTEGER NOT NULL,               -- chats.key
  created_at    INTEGER NOT NULL,
  id            TEXT NOT NULL,
  from_support  INTEGER NOT NULL,               -- 1: by the company
  company_total INTEGER NOT NULL,               -- the company's messages of the chat up to this one
  visitor_total INTEGER NOT NULL,               -- the visitor's
  type          TEXT NOT NULL,
  sender        TEXT NOT NULL,
  data          TEXT NOT NULL,                  -- JSON, as it was sent
  PRIMARY KEY (chat, created_at, id)
) STRICT, WITHOUT ROWID;
INSERT INTO totalled_messages
  SELECT chat, created_at, id, from_support, sum(from_support) OVER so_far, sum(NOT from_support) OVER so_far, type, sender, data
  FROM messages WINDOW so_far AS (PARTITION BY chat ORDER BY created_at, id);
DROP TABLE messages;
ALTER TABLE totalled_messages RENAME TO messages;
CREATE UNIQUE INDEX messages_id ON messages (id);
