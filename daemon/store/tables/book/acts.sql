-- name: copies
-- Of a certification of the machine or of its spare, whichever has given it out.
SELECT coalesce(max(json_extract(CAST(body AS TEXT), '$.copy')), 0) FROM entry
WHERE book_id IN (SELECT other_id FROM shared_book WHERE book_id = ?) AND json_extract(CAST(body AS TEXT), '$.type') = 'copy' AND json_extract(CAST(body AS TEXT), '$.code') = ?;

-- name: last_closed
SELECT {columns} FROM entry
WHERE book_id = ? AND json_extract(CAST(body AS TEXT), '$.type') = 'report' AND json_extract(CAST(body AS TEXT), '$.kind') = 'articles'
    AND json_extract(CAST(body AS TEXT), '$.number') > 0
ORDER BY json_extract(CAST(body AS TEXT), '$.number') DESC LIMIT 1;

-- name: closed
SELECT {columns} FROM entry
WHERE book_id = ? AND json_extract(CAST(body AS TEXT), '$.type') = 'report' AND json_extract(CAST(body AS TEXT), '$.kind') = 'articles'
    AND json_extract(CAST(body AS TEXT), '$.number') = ?;

-- name: report
SELECT {columns} FROM entry WHERE book_id = ? AND id = ? AND json_extract(CAST(body AS TEXT), '$.type') = 'report';

-- name: acts
SELECT {columns} FROM entry
WHERE book_id = ?1 AND json_extract(CAST(body AS TEXT), '$.type') IN ('cash', 'copy', 'report', 'outage', 'outage.ended', 'outage.notified') AND at >= ?2 AND at < ?3 AND id > ?4
ORDER BY id LIMIT ?5;

-- name: has_closure
SELECT EXISTS (SELECT 1 FROM closure WHERE book_id = ? AND created_at <= ?);

-- name: period
-- Back from the newest Z, which nearly always is the one: a search by its time goes through all of them.
SELECT coalesce(sum(json_extract(CAST(body AS TEXT), '$.amount')) FILTER (WHERE json_extract(CAST(body AS TEXT), '$.kind') = 'deposit'), 0),
       coalesce(sum(json_extract(CAST(body AS TEXT), '$.amount')) FILTER (WHERE json_extract(CAST(body AS TEXT), '$.kind') = 'withdrawal'), 0),
       coalesce((SELECT z_number FROM closure WHERE book_id = ?1 AND +created_at <= ?2 ORDER BY z_number DESC LIMIT 1), 0)
FROM entry
WHERE book_id = ?1 AND json_extract(CAST(body AS TEXT), '$.type') = 'cash' AND at >= ?2 AND id > ?3
  AND after_z >= coalesce((SELECT z_number FROM closure WHERE book_id = ?1 AND +created_at <= ?2 ORDER BY z_number DESC LIMIT 1), 0);

-- name: between
SELECT coalesce(sum(json_extract(CAST(body AS TEXT), '$.amount')) FILTER (WHERE json_extract(CAST(body AS TEXT), '$.kind') = 'deposit'), 0) AS deposits,
       coalesce(sum(json_extract(CAST(body AS TEXT), '$.amount')) FILTER (WHERE json_extract(CAST(body AS TEXT), '$.kind') = 'withdrawal'), 0) AS withdrawals
FROM entry
WHERE book_id = ?1 AND json_extract(CAST(body AS TEXT), '$.type') = 'cash' AND at >= ?2 AND at < ?3;

-- name: list
SELECT {columns} FROM entry
WHERE book_id = ?1 AND json_extract(CAST(body AS TEXT), '$.type') = 'cash' AND at >= ?2 AND at < ?3 AND id > ?4
ORDER BY id LIMIT ?5;

-- name: newest
SELECT {columns} FROM entry
WHERE book_id = ?1 AND json_extract(CAST(body AS TEXT), '$.type') = 'cash' AND at >= ?2 AND at < ?3
ORDER BY id DESC LIMIT ?4;

-- name: note
UPDATE entry SET actor = ?, noted_at = ? WHERE id = ?;

-- name: noted
-- When the so-manieth of that type before now was noted.
SELECT noted_at FROM entry
WHERE book_id = ? AND actor = ? AND actor <> '' AND noted_at > ? AND noted_at <= ?
    AND json_extract(CAST(body AS TEXT), '$.type') = ? ORDER BY noted_at DESC LIMIT 1 OFFSET ?;

-- name: z_after
SELECT coalesce(min(z_number), 0) FROM closure WHERE book_id = ? AND z_number > ?;
