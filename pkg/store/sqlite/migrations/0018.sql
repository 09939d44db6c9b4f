-- How the texts of documents are fetched from their addresses. It is a table of its own, because a claim would write the
-- text again, and a list would read past it.

CREATE TABLE document_sources (
  document_id TEXT PRIMARY KEY,
  company_id  TEXT NOT NULL,
  due_at      INTEGER NOT NULL,                 -- of the next fetch
  source      TEXT NOT NULL                     -- JSON
) STRICT;
CREATE INDEX document_sources_due ON document_sources (due_at, company_id, document_id);
