-- name: extent
SELECT last_seq, z_number, coalesce((SELECT max(id) FROM entry WHERE book_id = book.id), 0) FROM book WHERE id = ?;

-- name: newest_first
SELECT {columns} FROM certification
WHERE book_id = ? AND seq > ? AND seq <= ? AND ended_at >= ? AND ended_at < ? AND (? = '' OR state = ?)
    AND (? = '' OR instr(' ' || ? || ' ', ' ' || type || ' ') > 0) AND (? IS NULL OR total_ttc = ?) AND (? = '' OR instr(number, ?) > 0)
ORDER BY seq DESC LIMIT ?;

-- name: with_part
-- The numbers alone, in their indexes, are a twentieth of the rows.
SELECT {columns} FROM certification
WHERE id IN (
        SELECT id FROM certification INDEXED BY certification_number
        WHERE book_id = ? AND state NOT IN ('refused', 'abandoned')
            AND number > ? AND number <= ? AND instr(number, ?) > 0
        UNION ALL
        SELECT id FROM certification INDEXED BY certification_failed_number
        WHERE book_id = ? AND state IN ('refused', 'abandoned')
            AND number > ? AND number <= ? AND instr(number, ?) > 0
    )
    AND +seq > ? AND +seq <= ? AND ended_at >= ? AND ended_at < ? AND (? = '' OR state = ?)
    AND (? = '' OR instr(' ' || ? || ' ', ' ' || type || ' ') > 0) AND (? IS NULL OR total_ttc = ?)
ORDER BY +seq DESC LIMIT ?;

-- name: payloads
SELECT id, seq, payload FROM certification
WHERE book_id = ? AND seq > ? AND seq <= ? AND ended_at >= ? AND ended_at < ? AND (? = '' OR state = ?)
    AND (? = '' OR instr(' ' || ? || ' ', ' ' || type || ' ') > 0) AND (? IS NULL OR total_ttc = ?)
ORDER BY seq DESC LIMIT ?;

-- name: oldest_first
SELECT {columns} FROM certification
WHERE book_id = ? AND seq > ? AND seq <= ? AND ended_at >= ? AND ended_at < ?
ORDER BY seq LIMIT ?;

-- name: by_code
SELECT {columns} FROM certification WHERE book_id = ? AND code = ? AND twin & 2 = 0;

-- name: credits
SELECT {columns} FROM certification
WHERE original_id = ? AND original_id > 0 AND state = 'certified' ORDER BY id LIMIT 100;

-- name: newest
SELECT coalesce(max(seq), 0) FROM certification WHERE book_id = ? AND seq <= ?;

-- name: of_number
SELECT {columns} FROM certification WHERE book_id = ? AND number = ? AND seq < ? ORDER BY seq DESC;

-- name: walk_back
SELECT {columns} FROM certification INDEXED BY certification_seq WHERE book_id = ? AND seq > ? AND seq <= ? ORDER BY seq DESC;

-- name: walk_on
SELECT {columns} FROM certification INDEXED BY certification_seq WHERE book_id = ? AND seq > ? AND seq <= ? ORDER BY seq;

-- name: numbers
-- Of every so manieth entry before the newest.
WITH RECURSIVE every (step, seq, newest) AS (
    SELECT ?1, ?1, ?2 UNION ALL SELECT step, seq + step, newest FROM every WHERE seq + step < newest
)
SELECT number FROM every CROSS JOIN certification ON book_id = ?3 AND certification.seq = every.seq ORDER BY number;
