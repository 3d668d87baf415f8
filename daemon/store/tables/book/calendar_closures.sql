-- name: last
SELECT {columns} FROM entry
WHERE book_id = ? AND json_extract(CAST(body AS TEXT), '$.type') = 'calendar' AND json_extract(CAST(body AS TEXT), '$.kind') = ?
ORDER BY json_extract(CAST(body AS TEXT), '$.number') DESC LIMIT 1;

-- name: by_number
SELECT {columns} FROM entry
WHERE book_id = ? AND json_extract(CAST(body AS TEXT), '$.type') = 'calendar' AND json_extract(CAST(body AS TEXT), '$.kind') = ?
    AND json_extract(CAST(body AS TEXT), '$.number') = ?;

-- name: by_period
SELECT {columns} FROM entry
WHERE book_id = ? AND json_extract(CAST(body AS TEXT), '$.type') = 'calendar' AND json_extract(CAST(body AS TEXT), '$.kind') = ?
    AND json_extract(CAST(body AS TEXT), '$.period') = ?
ORDER BY json_extract(CAST(body AS TEXT), '$.number') DESC;

-- name: first_z_since_repair
-- When the first Z after that number was made, if a time was repaired after that entry.
SELECT created_at FROM closure
WHERE book_id = ?1 AND z_number > ?2
      AND EXISTS (SELECT 1 FROM entry WHERE book_id = ?1 AND id > ?3 AND json_extract(CAST(body AS TEXT), '$.type') = 'time')
ORDER BY z_number LIMIT 1;

-- name: list
SELECT {columns} FROM entry
WHERE book_id = ? AND json_extract(CAST(body AS TEXT), '$.type') = 'calendar' AND json_extract(CAST(body AS TEXT), '$.kind') = ?
    AND json_extract(CAST(body AS TEXT), '$.number') > ?
ORDER BY json_extract(CAST(body AS TEXT), '$.number') LIMIT ?;

-- name: first_at
-- When the first thing of the book happened that is kept.
SELECT min(at) FROM (
    SELECT (SELECT ended_at FROM certification WHERE book_id = ?1 AND seq > ?2 ORDER BY seq LIMIT 1) AS at
    UNION ALL
    SELECT (SELECT created_at FROM closure WHERE book_id = ?1 AND z_number > ?3 ORDER BY z_number LIMIT 1)
);

-- name: days
SELECT z_number, created_at, last_seq, hash, body FROM closure WHERE book_id = ? AND z_number > ? AND z_number <= ? ORDER BY z_number;

-- name: has_z
SELECT EXISTS (SELECT 1 FROM closure WHERE book_id = ? AND z_number > ?);

-- name: keep
INSERT INTO letterhead (book_id, digest, at, content) VALUES (?, ?, ?, ?)
ON CONFLICT (book_id, digest) DO UPDATE SET at = max(at, excluded.at);

-- name: find
-- Also of the other machine of a pair: each prints what either has certified.
SELECT content FROM letterhead WHERE book_id IN (SELECT other_id FROM shared_book WHERE book_id = ?) AND digest = ?;

-- name: newest
SELECT digest, content FROM letterhead WHERE book_id = ? ORDER BY at DESC LIMIT 1;
