-- name: find_key
-- A sale that is not certified yet, also while its attempt is under way; else what is noted of the key, and last what has failed.
SELECT 0 AS has_failed, deferred.id AS sale_id, book_id <> ?1 AS is_elsewhere, fingerprint, NULL, NULL, NULL, book.id, nim, mode
FROM deferred JOIN book ON book.id = book_id
WHERE book_id IN (SELECT other_id FROM shared_book WHERE book_id = ?1) AND key_hash = ?2 AND state IN ('waiting', 'begun', 'doubtful')
UNION ALL
SELECT EXISTS (SELECT 1 FROM certification WHERE id = idempotency.attempt_id AND state IN ('refused', 'abandoned')), 0, book_id <> ?1,
    fingerprint, attempt_id, idempotency.z_number, answer, book.id, nim, mode
FROM idempotency JOIN book ON book.id = book_id
WHERE book_id IN (SELECT other_id FROM shared_book WHERE book_id = ?1) AND key_hash = ?2
ORDER BY has_failed, sale_id DESC, is_elsewhere LIMIT 1;

-- name: count_numbers
-- As many digits as the series has, so that text order is that of the numbers. Two machines may have given the same before they became a pair.
SELECT count(DISTINCT coalesce(number_key, number)), coalesce(max(coalesce(number_key, number)), '') FROM certification
WHERE book_id IN (SELECT other_id FROM shared_book WHERE book_id = ?1) AND coalesce(number_key, number) >= ?2 AND coalesce(number_key, number) < ?2 || ':' AND coalesce(number_key, number) GLOB ?3
    AND state NOT IN ('refused', 'abandoned') AND twin & 1 = 0;

-- name: bounds
SELECT (SELECT min(coalesce(number_key, number)) FROM certification
        WHERE book_id IN (SELECT other_id FROM shared_book WHERE book_id = ?1) AND seq IS NULL AND coalesce(number_key, number) GLOB ?2),
    (SELECT max(coalesce(number_key, number)) FROM settlement JOIN certification ON certification.id = attempt_id
        WHERE settlement.book_id IN (SELECT other_id FROM shared_book WHERE book_id = ?1) AND decision = 'adopted' AND coalesce(number_key, number) GLOB ?2);

-- name: adopted
-- Each invoice that a ledger has taken over from its machine, with how far the counters of sales and credit notes had gone on before; an older
-- ledger does not know from where (`settlements.adopt`).
SELECT last.id, last.type, coalesce(last.number_key, last.number), last.fvc - before.fvc, last.frc - before.frc, last.base_tc = last.tc
FROM settlement JOIN certification AS last ON last.id = attempt_id
JOIN certification AS before ON before.id = (SELECT id FROM certification
    WHERE book_id = last.book_id AND seq < last.seq AND state = 'certified' ORDER BY seq DESC LIMIT 1) AND before.epoch = last.epoch
WHERE settlement.book_id IN (SELECT other_id FROM shared_book WHERE book_id = ?) AND decision = 'adopted';

-- name: last_before
-- What is said of the state first is the condition of the index.
SELECT coalesce(max(coalesce(number_key, number)), '') FROM certification
WHERE book_id IN (SELECT other_id FROM shared_book WHERE book_id = ?1) AND coalesce(number_key, number) >= ?2 AND coalesce(number_key, number) < ?2 || ':' AND coalesce(number_key, number) GLOB ?3
    AND state NOT IN ('refused', 'abandoned') AND state <> 'begun' AND twin & 1 = 0 AND id < ?4;

-- name: is_reserved
-- Spelled so, or equal to it, or by a sale that waits.
SELECT EXISTS (SELECT 1 FROM shared_book WHERE book_id = ?1 AND (
    EXISTS (SELECT 1 FROM certification WHERE book_id = other_id AND number = ?2 AND state NOT IN ('refused', 'abandoned'))
    OR EXISTS (SELECT 1 FROM certification
        WHERE book_id = other_id AND coalesce(number_key, number) = ?3 AND state NOT IN ('refused', 'abandoned') AND twin & 1 = 0)
    OR EXISTS (SELECT 1 FROM deferred WHERE book_id = other_id AND number_key = ?3 AND state IN ('waiting', 'begun', 'doubtful'))));

-- name: sharing
SELECT nim FROM shared_book JOIN book ON book.id = other_id WHERE book_id = ? AND mode = 'live';
