-- name: unended
SELECT {columns} FROM certification WHERE book_id = ? AND seq IS NULL;

-- name: attention
SELECT attention FROM book WHERE id = ?;

-- name: dangling_keys
SELECT count(*) FROM idempotency
WHERE book_id = ? AND (
    (attempt_id IS NOT NULL) + (z_number IS NOT NULL) + (answer IS NOT NULL) <> 1
    OR attempt_id IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM certification WHERE id = attempt_id AND book_id = idempotency.book_id)
    OR z_number IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM closure WHERE closure.book_id = idempotency.book_id AND closure.z_number = idempotency.z_number)
);

-- name: outbox
SELECT ref_id FROM outbox WHERE destination = ? AND book_id = ? AND type = ?;

-- name: closures
SELECT z_number FROM closure WHERE book_id = ? ORDER BY z_number;

-- name: unannounced
-- What an operator has taken over from the machine was announced to nobody.
WITH announced AS MATERIALIZED (SELECT ref_id FROM event WHERE book_id = ?1 AND type = ?2)
SELECT seq, number FROM certification
WHERE book_id = ?1 AND state = 'certified' AND id NOT IN announced
    AND seq > (SELECT min(seq) FROM announced CROSS JOIN certification ON certification.id = ref_id)
    AND id NOT IN (SELECT attempt_id FROM settlement WHERE book_id = ?1 AND decision = 'adopted' AND attempt_id IS NOT NULL)
ORDER BY seq LIMIT 100;
