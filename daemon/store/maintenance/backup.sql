-- name: counts
SELECT (SELECT count(*) FROM certification JOIN book ON book.id = book_id WHERE mode = 'live' AND state = 'certified'),
       (SELECT count(*) FROM closure JOIN book ON book.id = book_id WHERE mode = 'live');
