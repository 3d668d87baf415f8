-- name: numbers
SELECT number FROM certification WHERE book_id = ? AND state IN ('begun', 'certified', 'disputed');
