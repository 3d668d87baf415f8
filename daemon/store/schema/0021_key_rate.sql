-- How many requests a minute a key for the relay may make; 0: any number.
ALTER TABLE api_key ADD COLUMN rate INTEGER NOT NULL DEFAULT 0 CHECK (rate >= 0);
