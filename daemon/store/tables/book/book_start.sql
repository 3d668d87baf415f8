-- name: read
SELECT seq, z_number, entry_id, at, hash, running, closed, closed_seq, period_start, fvc_start, deposits, withdrawals,
       counted_seq, counted_z, counted_id, bytes
FROM book_start WHERE book_id = ?;

-- name: write
INSERT OR REPLACE INTO book_start (seq, z_number, entry_id, at, hash, running, closed, closed_seq, period_start, fvc_start, deposits,
                                   withdrawals, counted_seq, counted_z, counted_id, bytes, book_id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);
