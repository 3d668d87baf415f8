-- name: insert
INSERT INTO closure (book_id, z_number, report_id, period_start, period_end, created_at, certs_count, total_ttc,
                     tc, fvc, frc, unexplained, first_seq, last_seq, body, hash)
VALUES (:book, :z_number, :report_id, :period_start, :period_end, :created_at, :certs_count, :total_ttc,
        :tc, :fvc, :frc, :unexplained, :first_seq, :last_seq, :body, :hash);

-- name: opening
SELECT z_number, unexplained FROM book WHERE id = ?;

-- name: advance
UPDATE book SET last_at = :created_at, head = :hash, tc = :tc, fvc = :fvc, frc = :frc, z_number = :z_number, seen = coalesce(:seen, seen),
                unexplained = 0
WHERE id = :book;

-- name: by_number
SELECT {columns} FROM closure WHERE book_id = ? AND z_number = ?;

-- name: by_report_id
SELECT {columns} FROM closure WHERE book_id IN (SELECT other_id FROM shared_book WHERE book_id = ?) AND report_id = ?;

-- name: between
SELECT {columns} FROM closure
WHERE book_id = ? AND created_at >= ? AND created_at < ? AND z_number > ? ORDER BY created_at, id LIMIT ?;

-- name: since
SELECT first_seq, last_seq, z_number FROM closure WHERE book_id = ? AND created_at >= ? ORDER BY created_at, id;
