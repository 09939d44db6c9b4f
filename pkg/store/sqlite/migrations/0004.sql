-- Webhooks: endpoints of companies, and their deliveries: the queue of those that are pending, and the log of attempts.

ALTER TABLE companies ADD COLUMN webhook_retention INTEGER NOT NULL DEFAULT 0; -- seconds; 0: the default

CREATE TABLE webhook_endpoints (
  id              TEXT PRIMARY KEY,
  company_id      TEXT NOT NULL,
  url             TEXT NOT NULL,
  description     TEXT NOT NULL,
  events          TEXT,                   -- JSON array of types; NULL: all
  headers         TEXT,                   -- JSON array of {name, value}
  secrets         TEXT,                   -- JSON array of {value, createdAt, expiresAt}, newest first
  ordered         INTEGER NOT NULL,       -- 1: the deliveries of a chat one after the other
  created_at      INTEGER,
  disabled_at     INTEGER,
  disabled_reason TEXT NOT NULL,
  failing_since   INTEGER,
  warnings        INTEGER NOT NULL,
  warned_at       INTEGER,
  revision        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_endpoints_company ON webhook_endpoints (company_id, id);

CREATE TABLE webhook_deliveries (
  id          TEXT PRIMARY KEY,           -- webhook-id
  company_id  TEXT NOT NULL,
  endpoint_id TEXT NOT NULL,
  event_type  TEXT NOT NULL,
  chat_id     TEXT NOT NULL,              -- that the body is about; '': none
  body        TEXT NOT NULL,              -- JSON, as it is sent
  order_key   TEXT NOT NULL,              -- '': no order
  position    INTEGER NOT NULL,
  created_at  INTEGER,
  status      TEXT NOT NULL,
  reason      TEXT NOT NULL,
  due_at      INTEGER,                    -- NULL: not pending; also the end of a lease
  tries       INTEGER NOT NULL,
  attempts    TEXT,                       -- JSON array
  expires_at  INTEGER
) STRICT;
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (company_id, due_at, endpoint_id, id) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_deliveries_order ON webhook_deliveries (endpoint_id, order_key, position) WHERE due_at IS NOT NULL AND order_key <> '';
CREATE INDEX webhook_deliveries_endpoint ON webhook_deliveries (endpoint_id, created_at DESC, id);
CREATE INDEX webhook_deliveries_company ON webhook_deliveries (company_id, created_at DESC, id);
CREATE INDEX webhook_deliveries_chat ON webhook_deliveries (chat_id) WHERE chat_id <> '';
CREATE INDEX webhook_deliveries_expiry ON webhook_deliveries (expires_at);
