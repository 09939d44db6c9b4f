-- The highest message of each NATS stream that was processed: a stream that ends below it has lost messages.

CREATE TABLE streams (
  name       TEXT PRIMARY KEY,
  epoch      TEXT NOT NULL,                     -- RFC 3339 with nanoseconds
  sequence   INTEGER NOT NULL,
  message_id TEXT NOT NULL,
  at         TEXT NOT NULL                      -- RFC 3339 with nanoseconds
) STRICT, WITHOUT ROWID;
