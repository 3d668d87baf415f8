-- name: original
SELECT book.mode, book.nim, state, type, certification.fvc, fc FROM certification JOIN book ON book.id = book_id
WHERE certification.id = ?;
