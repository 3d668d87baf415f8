-- name: insert
INSERT INTO settlement (book_id, at, decision, attempt_id, attention, reason)
VALUES (?, ?, ?, ?, (SELECT attention FROM book WHERE id = ?), ?);

-- name: still_disputed
SELECT reason FROM certification WHERE book_id = ? AND seq IS NULL AND state = 'disputed' ORDER BY id LIMIT 1;

-- name: decided
SELECT coalesce(max(id), 0) FROM settlement WHERE book_id = ?;

-- name: has_code
-- In any book: two taxpayers may have had one machine.
SELECT EXISTS (SELECT 1 FROM certification WHERE book_id IN (SELECT id FROM book) AND code = ? AND twin & 2 = 0);

-- name: adopt
INSERT INTO certification (book_id, state, number, type, total_ttc, begun_at, base_tc, base_fvc, base_frc, payload, number_key, epoch)
VALUES (:book, 'begun', :number, :type, :total, :at, :tc, :fvc, :frc, :payload, nullif(:number_key, :number),
        (SELECT epoch FROM book WHERE id = :book)) RETURNING id;
