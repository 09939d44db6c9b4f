-- A company looks chats up by what the visitor's profile holds.

CREATE INDEX visitors_user_id ON visitors (company_id, user_id) WHERE user_id != '';
CREATE INDEX visitors_email ON visitors (company_id, email) WHERE email != '';
CREATE INDEX visitors_phone ON visitors (company_id, phone) WHERE phone != '';
