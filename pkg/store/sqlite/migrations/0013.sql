-- Messages are ordered by the microsecond in which they entered their chat: these columns change from milliseconds.

CREATE TABLE ordered_messages (
  chat          INTEGER NOT NULL,               -- chats.key
  created_at    INTEGER NOT NULL,               -- microseconds since 1970
  id            TEXT NOT NULL,
  from_support  INTEGER NOT NULL,               -- 1: by the company
  company_total INTEGER NOT NULL,               -- the company's messages of the chat up to this one
  visitor_total INTEGER NOT NULL,               -- the visitor's
  type          TEXT NOT NULL,
  sender        TEXT NOT NULL,
  data          TEXT NOT NULL,                  -- JSON, as it was sent
  PRIMARY KEY (chat, created_at, id)
) STRICT, WITHOUT ROWID;
INSERT INTO ordered_messages
  SELECT chat, created_at * 1000, id, from_support, company_total, visitor_total, type, sender, data FROM messages;
DROP TABLE messages;
ALTER TABLE ordered_messages RENAME TO messages;
CREATE UNIQUE INDEX messages_id ON messages (id);
UPDATE receipts SET read_up_to_time = read_up_to_time * 1000;
UPDATE awaited_receipts SET created_at = created_at * 1000;
