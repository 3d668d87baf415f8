-- name: by_id
SELECT {columns} FROM certification WHERE id = ?;

-- name: row
SELECT number, (SELECT nim FROM book WHERE book.id = book_id) FROM certification WHERE id = ?;

-- name: indexed
SELECT number, (SELECT nim FROM book WHERE book.id = book_id) FROM certification INDEXED BY certification_number
WHERE book_id IN (SELECT id FROM book) AND id = ? AND state NOT IN ('refused', 'abandoned');
