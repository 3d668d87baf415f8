-- name: probe
INSERT INTO meta (name, value) VALUES ('probe', '1') ON CONFLICT (name) DO UPDATE SET value = CAST(value AS INTEGER) + 1;

-- name: prune_keys
DELETE FROM idempotency WHERE (book_id, key_hash) IN (
    SELECT book_id, key_hash FROM idempotency WHERE at < ? LIMIT ?
);

-- name: mark_restored
UPDATE book SET restored_at = ?;

-- name: newest
SELECT coalesce(max(last_at), 0) FROM book;
