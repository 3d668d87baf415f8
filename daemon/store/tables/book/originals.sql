-- name: names
-- What a machine was called in each epoch that is over, and is called now; and whether the book is of the taxpayer or machine of book ?1.
WITH found AS (
    SELECT book.*, book.ifu = mine.ifu OR '' IN (book.ifu, mine.ifu) OR substr(book.nim, 1, 10) = substr(mine.nim, 1, 10) AS is_own
    FROM book JOIN book AS mine ON mine.id = ?1
    WHERE book.mode = mine.mode AND (book.nim = ?2 OR book.nim GLOB ?3)
)
SELECT found.id, json_extract(CAST(body AS TEXT), '$.number') - 1, json_extract(CAST(body AS TEXT), '$.was'), 0,
    json_extract(CAST(body AS TEXT), '$.before') = json_extract(CAST(body AS TEXT), '$.now'), is_own
FROM found JOIN entry ON entry.book_id = found.id AND json_extract(CAST(body AS TEXT), '$.type') = 'epoch'
UNION ALL
SELECT id, epoch, nim, in_use, 0, is_own FROM found;

-- name: sales
SELECT id, number, type, total_ttc, fvc > base_fvc FROM certification
WHERE book_id = ? AND epoch = ? AND fvc = ? AND state = 'certified' AND type NOT IN ('FA', 'EA') ORDER BY seq;

-- name: exports
SELECT id, number, type, total_ttc, 1 FROM certification
WHERE book_id = ? AND epoch = ? AND fc = ? AND type IN ('EV', 'ET') AND state = 'certified' AND fc >= 0 ORDER BY seq;

-- name: credited
SELECT coalesce(sum(total_ttc) FILTER (WHERE state <> 'begun'), 0), coalesce(sum(total_ttc), 0) FROM certification
WHERE original_id = ? AND original_id > 0 AND id <> ? AND state NOT IN ('refused', 'abandoned');

-- name: to_come
SELECT 1 FROM book WHERE id = ? AND epoch = ? AND coalesce(fvc, 0) < ?;

-- name: payload
SELECT payload FROM certification WHERE id = ?;

-- name: claim
-- -1, for a sale that is still to come, stands only in what has not ended: from its end on it is null (`seal`).
UPDATE certification SET original_id = CASE WHEN seq IS NULL THEN ?1 ELSE nullif(?1, -1) END WHERE id = ?2;

-- name: claimed
-- The sale that a credit note under way is booked on, with its total.
SELECT sale.id, sale.total_ttc FROM certification AS credit JOIN certification AS sale ON sale.id = credit.original_id
WHERE credit.id = ?;

-- name: unresolved
-- One under way that was not claimed yet is none of them: it takes nothing from anybody.
SELECT certification.id, book_id, type, total_ttc, payload FROM certification
WHERE book_id IN (SELECT book.id FROM book WHERE mode = ?1)
    AND original_id IS NULL AND type IN ('FA', 'EA') AND state IN ('certified', 'disputed') AND certification.id > ?2
UNION ALL
SELECT certification.id, book_id, type, total_ttc, payload FROM certification
WHERE book_id IN (SELECT book.id FROM book WHERE mode = ?1) AND seq IS NULL AND original_id = -1 AND certification.id > ?2
ORDER BY 1 LIMIT ?3;
