-- What one side of a chat wrote, in order: unread messages are counted without reading what the other side wrote.
CREATE INDEX messages_side ON messages (chat, from_support, created_at, id);
