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
