-- name: begin
INSERT INTO take_over (book_id, spare_id, began_at, reason) VALUES (?, ?, ?, ?);

-- name: end
UPDATE take_over SET ended_at = ? WHERE book_id = ? AND ended_at IS NULL;

-- name: since
SELECT {columns} FROM take_over_of
WHERE (book_id = ?1 OR spare_id = ?1) AND coalesce(ended_at, ?2) >= ?2 ORDER BY id DESC LIMIT 1;

-- name: all_lasting
SELECT {columns} FROM take_over_of WHERE ended_at IS NULL ORDER BY id;

-- name: newest_between
SELECT {columns} FROM take_over_of
WHERE spare_id = ?1 AND coalesce(ended_at, ?2) >= ?2 AND began_at <= ?3 ORDER BY id DESC LIMIT 1;

-- name: pair
INSERT OR IGNORE INTO machine_pair (book_id, spare_id) VALUES (?, ?);

-- name: pairs_without_take_over
SELECT book_id, spare_id FROM machine_pair AS pair
WHERE NOT EXISTS (SELECT 1 FROM take_over WHERE take_over.book_id = pair.book_id AND take_over.spare_id = pair.spare_id)
    AND NOT EXISTS (SELECT 1 FROM book WHERE id IN (pair.book_id, pair.spare_id) AND restored_at > 0);

-- name: part
DELETE FROM machine_pair WHERE book_id = ? AND spare_id = ?;

-- name: doubt
-- Of two machines those that are new to the ledger, as of the latest restore of either, or of the moment given.
UPDATE book SET restored_at = max(?3, (SELECT max(restored_at) FROM book WHERE id IN (?1, ?2))) WHERE id IN (?1, ?2) AND tc IS NULL;

-- name: not_compared
SELECT book.id, nim, mode FROM shared_book JOIN book ON book.id = other_id
WHERE shared_book.book_id = ?1 AND other_id <> ?1 AND restored_at > 0 AND lost_at = 0 AND in_use = 1 LIMIT 1;

-- name: is_awaited
SELECT EXISTS (SELECT 1 FROM book WHERE id = ?1 AND restored_at > 0 AND lost_at = 0 AND in_use = 1)
   AND EXISTS (SELECT 1 FROM shared_book WHERE book_id = ?1 AND other_id <> ?1);

-- name: lost
UPDATE book SET lost_at = ? WHERE id = ?;

-- name: sharing
SELECT id, nim, mode FROM shared_book JOIN book ON book.id = other_id WHERE shared_book.book_id = ?1 AND other_id <> ?1;
