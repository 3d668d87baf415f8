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
