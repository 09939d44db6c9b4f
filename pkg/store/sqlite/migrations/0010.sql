-- Tables whose rows have up to megabytes: they have a row id. Without one, a search compares whole rows and reads
-- all pages of each that it passes.

CREATE TABLE large_applications (
  id               TEXT PRIMARY KEY,
  company_id       TEXT NOT NULL,
  provider         TEXT NOT NULL,
  bot_name         TEXT NOT NULL,
  name             TEXT NOT NULL,
  widget_configs   TEXT NOT NULL,
  allowed_origins  TEXT,                        -- JSON array; NULL: any
  file_retention   INTEGER NOT NULL,            -- seconds
  verification     TEXT NOT NULL DEFAULT '',
  identity_secrets TEXT,                        -- JSON array, newest first; NULL: none
  support          TEXT NOT NULL DEFAULT ''     -- JSON; '': the zero settings
) STRICT;
INSERT INTO large_applications SELECT id, company_id, provider, bot_name, name, widget_configs, allowed_origins,
  file_retention, verification, identity_secrets, support FROM applications;
DROP TABLE applications;
ALTER TABLE large_applications RENAME TO applications;
CREATE INDEX applications_company ON applications (company_id, id);

CREATE TABLE large_templates (
  id         TEXT PRIMARY KEY,
  company_id TEXT NOT NULL,
  name       TEXT NOT NULL,
  status     TEXT NOT NULL,
  text       TEXT NOT NULL,
  parameters TEXT                               -- JSON array; NULL: none
) STRICT;
INSERT INTO large_templates SELECT id, company_id, name, status, text, parameters FROM templates;
DROP TABLE templates;
ALTER TABLE large_templates RENAME TO templates;
CREATE INDEX templates_company ON templates (company_id, id);

CREATE TABLE large_audit (
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
) STRICT;
INSERT INTO large_audit SELECT id, company_id, at, user_id, user, action, target, target_id, before, after FROM audit;
DROP TABLE audit;
ALTER TABLE large_audit RENAME TO audit;
CREATE INDEX audit_company ON audit (company_id, id);
CREATE INDEX audit_target ON audit (target_id, id);
