-- A key for the relay is valid there alone (decision 46); of one that signs, its public half (Ed25519) is kept.
ALTER TABLE api_key ADD COLUMN lane TEXT NOT NULL DEFAULT 'lan' CHECK (lane IN ('lan', 'relay'));
ALTER TABLE api_key ADD COLUMN public_key BLOB CHECK (public_key IS NULL OR length(public_key) = 32);
