-- The agents' queue, longest wait first.

CREATE INDEX chats_waiting ON chats (company_id, control_changed_at, id) WHERE agent_in_control AND assignee = '' AND closed_at IS NULL;
