-- Agents: how they serve an application's visitors, why they have a chat, and how visitors rate it.

ALTER TABLE applications ADD COLUMN support TEXT NOT NULL DEFAULT '';         -- JSON; '': the zero settings

ALTER TABLE chats ADD COLUMN handover_by TEXT NOT NULL DEFAULT '';            -- bot, visitor, offline_form; '': an agent's own decision
ALTER TABLE chats ADD COLUMN handover_reason TEXT NOT NULL DEFAULT '';
ALTER TABLE chats ADD COLUMN handover_note TEXT NOT NULL DEFAULT '';
ALTER TABLE chats ADD COLUMN handover_at INTEGER;
ALTER TABLE chats ADD COLUMN rating_score INTEGER NOT NULL DEFAULT 0;         -- 1 to 5; 0: not rated
ALTER TABLE chats ADD COLUMN rating_comment TEXT NOT NULL DEFAULT '';
ALTER TABLE chats ADD COLUMN rating_first_at INTEGER;
ALTER TABLE chats ADD COLUMN rating_at INTEGER;                               -- of the latest rating, which counts
CREATE INDEX chats_rated ON chats (company_id, rating_first_at) WHERE rating_first_at IS NOT NULL;
