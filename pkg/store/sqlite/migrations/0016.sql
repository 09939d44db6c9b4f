-- The documents of companies, and the passages into which they are cut.

CREATE TABLE documents (
  id         TEXT PRIMARY KEY,
  company_id TEXT NOT NULL,
  title      TEXT NOT NULL,
  address    TEXT NOT NULL,                     -- '': none
  format     TEXT NOT NULL,
  bytes      INTEGER NOT NULL,                  -- of the text
  passages   INTEGER NOT NULL,
  created_at INTEGER,
  updated_at INTEGER,
  revision   INTEGER NOT NULL,
  text       TEXT NOT NULL                      -- last, because lists do not read it
) STRICT;
CREATE INDEX documents_company ON documents (company_id, id, bytes);

CREATE TABLE passages (
  key         INTEGER PRIMARY KEY,              -- rowid of passage_terms
  document_id TEXT NOT NULL,
  company_id  TEXT NOT NULL,
  number      INTEGER NOT NULL,                 -- in its document, from 1 on
  title       TEXT NOT NULL,
  heading     TEXT NOT NULL,
  address     TEXT NOT NULL,
  text        TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX passages_document ON passages (document_id, number);

-- The terms of passages, each prefixed with its company: a search reads nothing of other companies. The terms are
-- tokens as they are, separated by spaces; the texts are in passages.
CREATE VIRTUAL TABLE passage_terms USING fts5 (
  heading, text, content = '', contentless_delete = 1, tokenize = 'ascii'
);
