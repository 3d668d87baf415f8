-- name: numbers
SELECT number, number_year FROM certification WHERE book_id = ? AND state IN ('begun', 'certified', 'disputed');
