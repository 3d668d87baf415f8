-- name: insert
INSERT INTO entry (book_id, after_seq, after_z, at, body, hash) VALUES (?, ?, ?, ?, ?, ?) RETURNING id;

-- name: all
SELECT {columns} FROM entry WHERE book_id = ? ORDER BY after_seq, after_z, id;

-- name: last
SELECT {columns} FROM entry WHERE book_id = ? ORDER BY after_seq DESC, after_z DESC, id DESC LIMIT 1;

-- name: last_link
SELECT hash FROM (
    SELECT z_number AS z, 0 AS kind, 0 AS id, hash FROM closure WHERE book_id = ?1 AND last_seq = ?2 AND z_number <= ?3
    UNION ALL
    SELECT after_z, 1, id, hash FROM entry
    WHERE book_id = ?1 AND after_seq = ?2 AND (after_z < ?3 OR after_z = ?3 AND id < ?4)
) ORDER BY z DESC, kind DESC, id DESC LIMIT 1;

-- name: lost
SELECT {columns} FROM entry
WHERE book_id = ? AND iif(json_valid(CAST(body AS TEXT)), json_extract(CAST(body AS TEXT), '$.type') = 'lost', 0) ORDER BY id;

-- name: record_link
SELECT hash FROM certification WHERE book_id = ? AND seq = ?;

-- name: first_seq
SELECT min(seq) FROM certification WHERE book_id = ? AND seq IS NOT NULL AND ended_at > ?;

-- name: first_z
SELECT min(z_number) FROM closure WHERE book_id = ? AND created_at > ?;

-- name: floor
SELECT coalesce((SELECT max(ended_at) FROM certification WHERE book_id = ? AND seq IS NOT NULL AND ended_at <= ?), 0),
       coalesce((SELECT max(created_at) FROM closure WHERE book_id = ? AND created_at <= ?), 0),
       coalesce((SELECT max(at) FROM entry WHERE book_id = ? AND at <= ?), 0);

-- name: entries
UPDATE entry
SET chained_at = coalesce(chained_at, at), at = min(max(at - :ahead, :floor), :now)
WHERE book_id = :book AND at > :now;

-- name: deferred
UPDATE deferred SET sold_at = min(max(sold_at - :ahead, :floor), :now) WHERE book_id = :book AND sold_at > :now;

-- name: take_over_begins
UPDATE take_over SET began_at = min(max(began_at - :ahead, :floor), :now) WHERE book_id = :book AND began_at > :now;

-- name: take_over_ends
UPDATE take_over SET ended_at = min(max(ended_at - :ahead, :floor), :now) WHERE book_id = :book AND ended_at > :now;

-- name: records
UPDATE certification
SET chained_at = coalesce(chained_at, ended_at), ended_at = min(max(ended_at - :ahead, :floor), :now)
WHERE book_id = :book AND seq >= :seq;

-- name: period_starts
UPDATE closure
SET chained_start = coalesce(chained_start, period_start), period_start = min(max(period_start - :ahead, :floor), :now)
WHERE book_id = :book AND z_number >= :z AND period_start > :now;

-- name: closures
UPDATE closure
SET chained_at = coalesce(chained_at, created_at), created_at = min(max(created_at - :ahead, :floor), :now),
    period_end = min(max(created_at - :ahead, :floor), :now)
WHERE book_id = :book AND z_number >= :z;

-- name: checkpoints
UPDATE checkpoint SET at = min(max(at - :ahead, :floor), :now) WHERE book_id = :book AND seq >= :seq;

-- name: totals
UPDATE total SET at = min(max(at - :ahead, :floor), :now) WHERE book_id = :book AND at > :now;

-- name: start
UPDATE book_start
SET at = min(max(at - :ahead, :floor), :now), period_start = min(max(period_start - :ahead, :floor), :now)
WHERE book_id = :book AND at > :now;

-- name: period_start
UPDATE total SET period_start = min(max(period_start - :ahead, :floor), :now) WHERE book_id = :book AND period_start > :now;

-- name: open
UPDATE certification SET begun_at = min(begun_at, :now) WHERE book_id = :book AND seq IS NULL;

-- name: keys
UPDATE idempotency SET at = min(at, :now) WHERE book_id = :book;

-- name: events
UPDATE event SET at = min(at, :now) WHERE book_id = :book;

-- name: count
UPDATE book SET repairs = repairs + 1 WHERE id = :book;
