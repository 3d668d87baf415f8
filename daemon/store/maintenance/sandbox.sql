-- name: uncounted_records
SELECT seq, length(payload) + length(tally) FROM certification WHERE book_id = ? AND seq > ? ORDER BY seq LIMIT ?;

-- name: uncounted_closures
SELECT z_number, length(body) FROM closure WHERE book_id = ? AND z_number > ? ORDER BY z_number LIMIT ?;

-- name: uncounted_entries
SELECT id, length(body) FROM entry WHERE book_id = ? AND id > ? ORDER BY id LIMIT ?;

-- name: entries_left
SELECT count(*) FROM entry WHERE book_id = ? AND id > ?;

-- name: oldest_entries
SELECT {entry} FROM entry WHERE book_id = ? AND id > ? ORDER BY id LIMIT ?;

-- name: oldest_records
SELECT seq, ended_at, type, fvc, hash, tally, length(payload) + length(tally) FROM certification
WHERE book_id = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?;

-- name: oldest_closures
SELECT z_number, last_seq, created_at AS at, period_end, hash, length(body) AS size FROM closure
WHERE book_id = ? AND z_number > ? ORDER BY z_number LIMIT ?;

-- name: settlements
UPDATE settlement SET attempt_id = NULL
WHERE book_id = ?1 AND attempt_id IN (SELECT id FROM certification WHERE book_id = ?1 AND seq <= ?2);

-- name: records
DELETE FROM certification WHERE book_id = ? AND seq <= ?;

-- name: checkpoints
DELETE FROM checkpoint WHERE book_id = ? AND seq <= ?;

-- name: closures
DELETE FROM closure WHERE book_id = ? AND z_number <= ?;

-- name: cash
DELETE FROM entry
WHERE book_id = ? AND id <= ? AND json_extract(CAST(body AS TEXT), '$.type') = 'cash' AND id < (SELECT max(id) FROM entry);

-- name: keys
DELETE FROM idempotency WHERE book_id = ? AND at <= ?;

-- name: outbox
DELETE FROM outbox WHERE book_id = ? AND created_at <= ?;

-- name: deferred
DELETE FROM deferred WHERE book_id = ? AND ended_at BETWEEN 1 AND ?;

-- name: events
DELETE FROM event WHERE book_id = ?1 AND at <= ?2 AND id < (SELECT id FROM event WHERE at > ?2 ORDER BY id LIMIT 1);
