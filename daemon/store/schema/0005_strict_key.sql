-- A key whose requests may hold no field that nobody knows (decision 27).
ALTER TABLE api_key ADD COLUMN strict INTEGER NOT NULL DEFAULT 0 CHECK (strict IN (0, 1));
