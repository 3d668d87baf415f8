-- name: last_record
SELECT {record} FROM certification WHERE book_id = ? AND seq IS NOT NULL ORDER BY seq DESC LIMIT 1;

-- name: last_closure
SELECT {closure} FROM closure WHERE book_id = ? ORDER BY z_number DESC LIMIT 1;
