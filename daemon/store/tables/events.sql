-- name: insert
INSERT INTO event (book_id, type, ref_id, at, detail) VALUES (?, ?, ?, ?, ?);

-- name: after
SELECT id, book_id, type, ref_id, at, detail FROM event WHERE id > ? AND book_id = ? ORDER BY id LIMIT ?;

-- name: by_id
SELECT id, book_id, type, ref_id, at, detail FROM event WHERE id = ? AND book_id = ?;

-- name: last_told
SELECT coalesce(max(at), 0) FROM event WHERE book_id = ? AND type = ?;

-- name: span
SELECT coalesce(min(id), 0), coalesce(max(id), 0) FROM event;
