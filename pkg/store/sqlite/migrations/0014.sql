-- The bots of applications, and the connections of companies to language models.

CREATE TABLE bots (
  id         TEXT PRIMARY KEY,                  -- of the application
  company_id TEXT NOT NULL,
  settings   TEXT NOT NULL,                     -- JSON: the draft, the published versions and the secrets
  revision   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX bots_company ON bots (company_id, id);

CREATE TABLE model_connections (
  id         TEXT PRIMARY KEY,
  company_id TEXT NOT NULL,
  settings   TEXT NOT NULL,                     -- JSON: the address, and the encrypted key
  revision   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX model_connections_company ON model_connections (company_id, id);
