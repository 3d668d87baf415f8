-- name: has_meta
SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'meta');

-- name: count
INSERT INTO meta (name, value) VALUES ('commits', '1') ON CONFLICT (name) DO UPDATE SET value = CAST(value AS INTEGER) + 1
RETURNING value;

-- name: newest
SELECT coalesce(max(last_at), 0) FROM book WHERE mode = 'live';

-- name: waiting
SELECT nim FROM book WHERE mode = 'live' AND restored_at > 0 AND lost_at = 0 AND in_use = 1;
