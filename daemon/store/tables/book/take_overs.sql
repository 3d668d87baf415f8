-- name: begin
INSERT INTO take_over (book_id, spare_id, began_at, reason) VALUES (?, ?, ?, ?);

-- name: end
UPDATE take_over SET ended_at = ? WHERE book_id = ? AND ended_at IS NULL;

-- name: lasting
SELECT {columns} FROM take_over_of WHERE (book_id = ?1 OR spare_id = ?1) AND ended_at IS NULL;

-- name: all_lasting
SELECT {columns} FROM take_over_of WHERE ended_at IS NULL ORDER BY id;

-- name: newest_between
SELECT {columns} FROM take_over_of
WHERE spare_id = ?1 AND coalesce(ended_at, ?2) >= ?2 AND began_at <= ?3 ORDER BY id DESC LIMIT 1;

-- name: sharing
SELECT id, nim, mode FROM shared_book JOIN book ON book.id = other_id WHERE shared_book.book_id = ?1 AND other_id <> ?1;
