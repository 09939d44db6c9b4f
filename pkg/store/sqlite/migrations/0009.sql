-- The size of a webhook delivery with all its attempts: a company has a share of the store. The next attempts of a
-- delivery that was stored before count, its earlier ones as they are stored.

ALTER TABLE webhook_deliveries ADD COLUMN size INTEGER NOT NULL DEFAULT 0;
UPDATE webhook_deliveries SET size = (512 + length(body) + ifnull(length(attempts), 0) + 1023) / 1024 * 1024;
DROP INDEX webhook_deliveries_company;
CREATE INDEX webhook_deliveries_company ON webhook_deliveries (company_id, created_at DESC, id, size);
