-- name: insert
INSERT INTO event (book_id, type, ref_id, at, detail) VALUES (?, ?, ?, ?, ?);

-- name: after
SELECT id, book_id, type, ref_id, at, detail FROM event WHERE id > ? AND book_id = ? ORDER BY id LIMIT ?;

-- name: newest
SELECT coalesce(max(id), 0) FROM event;

-- name: prune
DELETE FROM event WHERE id IN (
    SELECT id FROM event WHERE at < ? AND id < (SELECT max(id) FROM event) ORDER BY id LIMIT ?
);
