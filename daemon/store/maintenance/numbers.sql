-- name: z_numbers
-- The taxpayer as `books.state` has it.
SELECT nim, mode,
       coalesce(nullif(ifu, ''),
                (SELECT ifu FROM certification
                 WHERE book_id = book.id AND seq IS NOT NULL AND state = 'certified' AND ifu <> '' ORDER BY seq DESC LIMIT 1), ''),
       z_number, z_asked
FROM book;

-- name: calendar_numbers
SELECT nim, mode,
       coalesce(nullif(ifu, ''),
                (SELECT ifu FROM certification
                 WHERE book_id = book.id AND seq IS NOT NULL AND state = 'certified' AND ifu <> '' ORDER BY seq DESC LIMIT 1), ''),
       (SELECT coalesce(max(json_extract(CAST(body AS TEXT), '$.number')), 0) FROM entry
        WHERE book_id = book.id AND json_extract(CAST(body AS TEXT), '$.type') = 'calendar'
              AND json_extract(CAST(body AS TEXT), '$.kind') = 'month'),
       (SELECT coalesce(max(json_extract(CAST(body AS TEXT), '$.number')), 0) FROM entry
        WHERE book_id = book.id AND json_extract(CAST(body AS TEXT), '$.type') = 'calendar'
              AND json_extract(CAST(body AS TEXT), '$.kind') = 'year')
FROM book;

-- name: revoked
SELECT hash FROM api_key WHERE revoked_at IS NOT NULL;

-- name: revoke
UPDATE api_key SET revoked_at = created_at WHERE hash = ? AND revoked_at IS NULL;

-- name: skip
UPDATE book SET z_number = ? WHERE id = ?;

-- name: ask
-- The question that is open, the negative number of one that is answered, or 0.
UPDATE book SET z_asked = ? WHERE id = ?;

-- name: question
SELECT z_asked FROM book WHERE id = ?;

-- name: newest
SELECT certification.id, hash, nim, number FROM certification JOIN book ON book.id = book_id
WHERE mode = 'live' AND state NOT IN ('refused', 'abandoned') ORDER BY certification.id DESC;

-- name: hash
SELECT hash FROM certification WHERE id = ?;

-- name: waiting
SELECT nim, number_key FROM deferred JOIN book ON book.id = book_id
WHERE mode = 'live' AND state IN ('waiting', 'begun', 'doubtful');
