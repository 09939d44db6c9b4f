-- Users: recovery codes, known devices, and the identity at an OpenID Connect issuer.

ALTER TABLE users ADD COLUMN recovery_codes TEXT NOT NULL DEFAULT ''; -- hashes, separated by spaces
ALTER TABLE users ADD COLUMN device_key TEXT NOT NULL DEFAULT '';     -- signs the cookies of known devices
ALTER TABLE users ADD COLUMN issuer TEXT NOT NULL DEFAULT '';         -- '': no sign-in with an issuer yet
ALTER TABLE users ADD COLUMN subject TEXT NOT NULL DEFAULT '';
