-- name: years
SELECT json_extract(CAST(body AS TEXT), '$.number') AS number FROM entry
WHERE book_id = ? AND json_extract(CAST(body AS TEXT), '$.type') = 'calendar' AND json_extract(CAST(body AS TEXT), '$.kind') = 'year'
ORDER BY number;

-- name: records
SELECT {record} FROM certification WHERE book_id = ? AND seq > ? AND seq <= ? ORDER BY seq;

-- name: closures
SELECT {closure} FROM closure WHERE book_id = ? AND z_number > ? AND z_number <= ? ORDER BY z_number;

-- name: entries
SELECT {entry} FROM entry WHERE book_id = ? AND after_seq >= ? AND after_seq <= ? ORDER BY after_seq, after_z, id;

-- name: decisions
SELECT id, at, decision, attempt_id, attention, reason FROM settlement
WHERE book_id = :book AND at >= :begin AND at <= :end ORDER BY id;

-- name: audit
SELECT id, at, actor, address, action, subject, detail, lower(hex(hash)) AS hash,
       lower(hex(coalesce((SELECT hash FROM audit AS before WHERE before.id = audit.id - 1), :genesis))) AS previous
FROM audit
WHERE id >= (SELECT min(id) FROM audit WHERE at >= :begin) AND id <= (SELECT max(id) FROM audit WHERE at <= :end)
ORDER BY id;

-- name: letterheads
SELECT lower(hex(digest)) AS digest, at, hex(content) AS content FROM letterhead WHERE book_id = :book ORDER BY at;
