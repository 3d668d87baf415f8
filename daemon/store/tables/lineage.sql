-- name: standing
SELECT z_number, coalesce((SELECT hash FROM closure WHERE book_id = book.id AND closure.z_number = book.z_number), x''),
       last_seq, head, tc, fvc, frc,
       coalesce((SELECT ended_at FROM certification WHERE book_id = book.id AND seq IS NOT NULL AND state = 'certified'
                 ORDER BY seq DESC LIMIT 1), 0),
       z_asked
FROM book WHERE id = ?;
