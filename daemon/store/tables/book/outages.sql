-- name: last
SELECT {columns} FROM entry
WHERE book_id = ?1 AND json_extract(CAST(body AS TEXT), '$.type') IN ('outage', 'outage.ended', 'outage.notified')
    AND json_extract(CAST(body AS TEXT), '$.number') = (
        SELECT max(json_extract(CAST(body AS TEXT), '$.number')) FROM entry
        WHERE book_id = ?1 AND json_extract(CAST(body AS TEXT), '$.type') IN ('outage', 'outage.ended', 'outage.notified'))
ORDER BY id;

-- name: after
SELECT {columns} FROM entry
WHERE book_id = ?1 AND json_extract(CAST(body AS TEXT), '$.type') IN ('outage', 'outage.ended', 'outage.notified')
    AND json_extract(CAST(body AS TEXT), '$.number') > ?2
ORDER BY json_extract(CAST(body AS TEXT), '$.number'), id;

-- name: ended_before
-- The last one that had ended by then.
SELECT json_extract(CAST(body AS TEXT), '$.number') FROM entry
WHERE book_id = ? AND json_extract(CAST(body AS TEXT), '$.type') = 'outage.ended' AND at < ? ORDER BY at DESC, id DESC LIMIT 1;

-- name: last_certified
-- By the machine: what a person has entered since is no sign of it.
SELECT ended_at FROM certification WHERE book_id = ? AND seq IS NOT NULL AND state = 'certified' AND reason IS NULL ORDER BY seq DESC LIMIT 1;

-- name: certified_since
-- An attempt that had begun before says nothing: only its outcome became known since.
SELECT ended_at - coalesce(line_ms, 0) FROM certification
WHERE book_id = ?1 AND seq IS NOT NULL AND state = 'certified' AND reason IS NULL AND begun_at >= ?2 AND ended_at > ?2
ORDER BY seq LIMIT 1;

-- name: sales
SELECT count(*), coalesce(sum(total_ttc), 0) FROM deferred WHERE book_id = ? AND outage = ? AND outage > 0 AND state <> 'withdrawn';
