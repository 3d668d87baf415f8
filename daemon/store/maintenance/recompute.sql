-- name: records
SELECT {record}, tally, epoch, original_id, number_key, number_year FROM certification WHERE book_id = ? AND seq > ? ORDER BY seq;

-- name: places
SELECT id, seq FROM certification INDEXED BY certification_seq WHERE book_id = ? AND seq > ? ORDER BY seq;

-- name: record
SELECT {record}, tally, epoch, original_id, number_key, number_year FROM certification WHERE id = ?;

-- name: closures
SELECT {closure} FROM closure WHERE book_id = ? ORDER BY z_number;

-- name: checkpoints
SELECT seq, at, running FROM checkpoint WHERE book_id = ? ORDER BY at, seq;

-- name: book
SELECT last_seq, last_at, head, z_number FROM book WHERE id = ?;

-- name: half_ended
SELECT count(*) FROM certification WHERE book_id = ? AND seq IS NULL AND state NOT IN ('begun', 'disputed');

-- name: count
SELECT coalesce(sum(last_seq), 0) FROM book;
