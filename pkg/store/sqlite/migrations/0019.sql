-- Ranking by meaning: the model of a company, and the embeddings of its passages.

CREATE TABLE knowledge_settings (
  id            TEXT PRIMARY KEY,               -- of the company
  company_id    TEXT NOT NULL,                  -- the same
  settings      TEXT NOT NULL,                  -- JSON: the connection and the model
  revision      INTEGER NOT NULL,
  claimed_until INTEGER,                        -- a processor makes embeddings, or all wait after a failure
  failures      INTEGER NOT NULL DEFAULT 0,     -- consecutive ones
  failure       TEXT NOT NULL DEFAULT ''        -- the last one; '': none
) STRICT, WITHOUT ROWID;

ALTER TABLE passages ADD COLUMN model TEXT NOT NULL DEFAULT '';  -- that has made the vector; '': none
ALTER TABLE passages ADD COLUMN vector BLOB;                     -- an int8 for each number
CREATE INDEX passages_model ON passages (company_id, model);
