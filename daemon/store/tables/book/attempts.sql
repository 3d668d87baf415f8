-- name: insert
-- Unless its spare certifies in its place, or the number is taken by another sale that waits or in a book that shares it.
INSERT INTO certification (book_id, state, number, type, total_ttc, begun_at, base_tc, base_fvc, base_frc,
                           request_id, payload, number_key, isf, number_year, epoch)
SELECT :book, 'begun', :number, :type, :total_ttc, :begun_at, :tc, :fvc, :frc,
       :request_id, :payload, nullif(:number_key, :number), :isf, coalesce(:number_year, 0), (SELECT epoch FROM book WHERE id = :book)
WHERE NOT EXISTS (SELECT 1 FROM take_over WHERE book_id = :book AND ended_at IS NULL)
    AND NOT EXISTS (SELECT 1 FROM shared_book WHERE book_id = :book AND (
        EXISTS (SELECT 1 FROM deferred
            WHERE book_id = other_id AND number_key = :number_key AND state IN ('waiting', 'begun', 'doubtful') AND id <> :deferred_id)
        OR other_id <> :book AND (
            EXISTS (SELECT 1 FROM certification
                WHERE book_id = other_id AND number = :number AND state NOT IN ('refused', 'abandoned')
                    AND number_year >= coalesce(:number_year, 0))
            OR EXISTS (SELECT 1 FROM certification
                WHERE book_id = other_id AND coalesce(number_key, number) = :number_key AND state NOT IN ('refused', 'abandoned')
                    AND twin & 1 = 0 AND number_year >= coalesce(:number_year, 0)))));

-- name: amend
UPDATE certification SET total_ttc = ?, payload = ? WHERE id = ? AND book_id = ? AND state = 'begun';

-- name: seal
UPDATE certification
SET seq = :seq, state = :state, total_ttc = :total_ttc, ended_at = :ended_at, tc = :tc, fvc = :fvc, frc = :frc,
    line_ms = :line_ms, duration_ms = :duration_ms, code = nullif(:code, ''), machine_time = nullif(:machine_time, ''),
    ifu = nullif(:ifu, ''), reason = nullif(:reason, ''), hash = :hash, tally = :tally, payload = coalesce(:payload, payload),
    epoch = coalesce(:epoch, epoch), fc = :fc, original_id = nullif(original_id, -1)
WHERE id = :id;

-- name: dispute
UPDATE certification SET state = 'disputed', reason = ? WHERE id = ? AND book_id = ? AND state = 'begun';

-- name: by_id
SELECT {columns} FROM certification WHERE id = ?1
    AND EXISTS (SELECT 1 FROM shared_book WHERE book_id = ?2 AND other_id = certification.book_id);

-- name: book_of
SELECT book_id FROM certification WHERE id = ?;

-- name: holder
-- Spelled so, else the one that has an equal number: of two that 0.1.0 wrote, each is found.
SELECT {columns} FROM certification WHERE id = coalesce(
    (SELECT id FROM certification
     WHERE book_id = ?1 AND number = ?2 AND state NOT IN ('refused', 'abandoned')
        AND (number_year >= ?4 OR (number_year = 0 AND begun_at >= ?5) OR begun_at >= ?6)
     ORDER BY id DESC LIMIT 1),
    (SELECT id FROM certification
     WHERE book_id = ?1 AND coalesce(number_key, number) = ?3 AND state NOT IN ('refused', 'abandoned') AND twin & 1 = 0
        AND (number_year >= ?4 OR (number_year = 0 AND begun_at >= ?5) OR begun_at >= ?6)
     ORDER BY id DESC LIMIT 1));

-- name: spelled
SELECT {columns} FROM certification
WHERE book_id = ? AND number = ? AND state NOT IN ('refused', 'abandoned') AND state = 'certified' ORDER BY seq DESC;

-- name: equal
SELECT {columns} FROM certification
WHERE book_id = ? AND coalesce(number_key, number) = ? AND state NOT IN ('refused', 'abandoned') AND twin & 1 = 0
    AND state = 'certified' ORDER BY seq DESC;

-- name: has_code
SELECT EXISTS (SELECT 1 FROM certification WHERE book_id = ? AND code = ? AND twin & 2 = 0);

-- name: is_of_earlier_activation
SELECT EXISTS (
    SELECT 1 FROM book JOIN certification ON certification.book_id = book.id AND code = ? AND twin & 2 = 0
    WHERE mode = ? AND (nim = ? OR nim GLOB ?) AND (book.id <> ? OR certification.epoch < book.epoch)
);

-- name: failed
-- However often a till has tried the same again; by the index of the numbers, not through the whole book for the order.
SELECT {columns} FROM certification
WHERE book_id = ? AND number = ? AND state IN ('refused', 'abandoned') AND +seq < ? AND ended_at >= ? AND ended_at < ? AND (? = '' OR state = ?)
    AND (? = '' OR type = ?) AND (? IS NULL OR total_ttc = ?)
ORDER BY +seq DESC LIMIT ?;

-- name: was_at_the_machine
SELECT EXISTS (
    SELECT 1 FROM certification
    WHERE book_id = ? AND coalesce(number_key, number) = ? AND state IN ('refused', 'abandoned') AND type = ? AND total_ttc = ?
        AND (reason IN (?, ?) OR EXISTS (SELECT 1 FROM settlement WHERE attempt_id = certification.id))
);

-- name: unfinished
SELECT {columns} FROM certification WHERE book_id = ? AND seq IS NULL AND state = ? ORDER BY id;

-- name: insert_key
-- Unless a sale that waits holds the key, other than that of the attempt, or it stands for something in a book that shares it.
INSERT INTO idempotency (book_id, key_hash, fingerprint, at, attempt_id, z_number, answer)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7
WHERE NOT EXISTS (SELECT 1 FROM shared_book WHERE book_id = ?1 AND (
        EXISTS (SELECT 1 FROM deferred
            WHERE book_id = other_id AND key_hash = ?2 AND state IN ('waiting', 'begun', 'doubtful') AND coalesce(attempt_id, -1) <> coalesce(?5, 0))
        OR other_id <> ?1 AND EXISTS (SELECT 1 FROM idempotency AS other
            WHERE book_id = other_id AND key_hash = ?2
                AND NOT EXISTS (SELECT 1 FROM certification WHERE id = other.attempt_id AND state IN ('refused', 'abandoned')))))
ON CONFLICT (book_id, key_hash) DO UPDATE SET
    fingerprint = excluded.fingerprint, at = excluded.at, attempt_id = excluded.attempt_id,
    z_number = excluded.z_number, answer = excluded.answer
WHERE EXISTS (SELECT 1 FROM certification WHERE id = idempotency.attempt_id AND state IN ('refused', 'abandoned'));

