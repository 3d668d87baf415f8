-- name: probe
INSERT INTO meta (name, value) VALUES ('probe', '1') ON CONFLICT (name) DO UPDATE SET value = CAST(value AS INTEGER) + 1;

-- name: keys_day
SELECT DISTINCT at / 86400000 AS day FROM idempotency WHERE book_id = ? ORDER BY day DESC LIMIT 1 OFFSET ?;

-- name: prune_keys
DELETE FROM idempotency WHERE (book_id, key_hash) IN (
    SELECT book_id, key_hash FROM idempotency WHERE book_id = ? AND at < ? LIMIT ?
);

-- name: events_day
SELECT DISTINCT at / 86400000 AS day FROM event WHERE book_id = ? ORDER BY day DESC LIMIT 1 OFFSET ?;

-- name: prune_events
-- The newest row stays whatever its age, so that an id is never given twice.
DELETE FROM event WHERE id IN (
    SELECT id FROM event WHERE book_id = ? AND at < ? AND id < (SELECT max(id) FROM event) ORDER BY id LIMIT ?
);

-- name: notices_day
SELECT DISTINCT sent_at / 86400000 AS day FROM outbox
WHERE book_id = ? AND state = 'sent' AND type <> 'closure.created' ORDER BY day DESC LIMIT 1 OFFSET ?;

-- name: prune_notices
DELETE FROM outbox WHERE id IN (
    SELECT id FROM outbox
    WHERE book_id = ? AND state = 'sent' AND type <> 'closure.created' AND sent_at < ? ORDER BY id LIMIT ?
);

-- name: mark_restored
UPDATE book SET restored_at = ?, lost_at = 0;

-- name: forget_evidence
-- What machines said when the copy was made; `settlements` keeps it.
DELETE FROM meta WHERE name GLOB 'evidence *';

-- name: doubt_waiting_sales
UPDATE deferred SET state = 'doubtful', why = ? WHERE state = 'waiting';

-- name: forget_signs_of_life
-- Of the daemon that worked with the ledger when the copy was made: since then it may have certified elsewhere.
DELETE FROM meta WHERE name GLOB 'alive *';
