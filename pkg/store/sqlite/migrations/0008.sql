-- The network of the visitor that sent a file: an address has a share of the file store.

ALTER TABLE files ADD COLUMN address TEXT NOT NULL DEFAULT ''; -- '': an agent's file
CREATE INDEX files_address ON files (address, expires_at, size);
