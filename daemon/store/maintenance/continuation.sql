-- name: last
SELECT coalesce(max(id), 0) FROM certification;

-- name: last_in_index
SELECT coalesce(max(id), 0) FROM certification INDEXED BY certification_seq WHERE seq IS NOT NULL;

-- name: in_index
-- By the index alone, which has all of it.
SELECT id, number FROM certification INDEXED BY certification_number
WHERE state NOT IN ('refused', 'abandoned') AND book_id IN (SELECT id FROM book WHERE mode = 'live') AND id > ?;

-- name: is_there
SELECT 1 FROM certification NOT INDEXED WHERE id = ? AND state IN ('begun', 'certified', 'refused', 'abandoned', 'disputed');

-- name: certified
SELECT number, code FROM certification
WHERE id = ? AND state = 'certified' AND book_id IN (SELECT id FROM book WHERE mode = 'live');

-- name: waiting
SELECT number, address FROM deferred JOIN book ON book.id = book_id
WHERE mode = 'live' AND state IN ('waiting', 'begun', 'doubtful') ORDER BY deferred.id DESC;

-- name: addresses
SELECT address FROM deferred;

-- name: newest_links
SELECT 'certification', certification.id FROM book JOIN certification ON book_id = book.id AND seq = last_seq WHERE mode = 'live'
UNION ALL
SELECT 'closure', id FROM closure
WHERE id IN (SELECT max(closure.id) FROM closure JOIN book ON book.id = book_id WHERE mode = 'live' GROUP BY book_id)
UNION ALL
SELECT 'entry', id FROM entry
WHERE id IN (SELECT max(entry.id) FROM entry JOIN book ON book.id = book_id WHERE mode = 'live' GROUP BY book_id);

-- name: unended
SELECT certification.id FROM main.certification JOIN main.book ON book.id = book_id WHERE mode = 'live' AND seq IS NULL;

-- name: repairs
SELECT 1 FROM main.entry
WHERE id > ? AND iif(json_valid(CAST(body AS TEXT)), json_extract(CAST(body AS TEXT), '$.type') = 'time', 0) LIMIT 1;

-- name: uncounted
UPDATE book SET unexplained = max(unexplained, fvc + frc - :counted - (SELECT fvc + frc FROM closure WHERE book_id = :book AND z_number = :z))
WHERE id = :book AND EXISTS (SELECT 1 FROM closure WHERE book_id = :book AND z_number = :z);
