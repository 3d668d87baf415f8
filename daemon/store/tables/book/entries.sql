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

-- name: record_link
SELECT hash FROM certification WHERE book_id = ? AND seq = ?;
