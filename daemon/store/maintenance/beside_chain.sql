-- name: unended
SELECT {columns}, number_year FROM certification WHERE book_id = ? AND seq IS NULL;

-- name: attention
SELECT attention FROM book WHERE id = ?;

-- name: dangling_keys
-- ?2: records of the book are lost, as an entry says.
SELECT count(*) FROM idempotency
WHERE book_id = ?1 AND (
    (attempt_id IS NOT NULL) + (z_number IS NOT NULL) + (answer IS NOT NULL) <> 1
    OR attempt_id IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM certification WHERE id = attempt_id AND book_id = idempotency.book_id)
        AND NOT ?2
    OR z_number IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM closure WHERE closure.book_id = idempotency.book_id AND closure.z_number = idempotency.z_number)
);

-- name: sold_later
-- Sales that the chain has taken on, and repairs of its time.
SELECT at, body FROM entry
WHERE book_id = ? AND iif(json_valid(CAST(body AS TEXT)), json_extract(CAST(body AS TEXT), '$.type') IN ('deferred', 'time'), 0) ORDER BY id;

-- name: sales
SELECT number, type, total_ttc, sold_at, outage, state IN ('waiting', 'begun', 'doubtful'), number_key, key, key_hash, fingerprint, payload
FROM deferred WHERE book_id = ?;

-- name: states_of_sales
-- A spare takes back and refuses in its own chain; a refusal stands there since 0.7. A machine may round another total than was sold for.
-- ?2 as above.
WITH decided AS MATERIALIZED (
    SELECT json_extract(CAST(body AS TEXT), '$.number') AS number, json_extract(CAST(body AS TEXT), '$.decision') AS decision
    FROM entry WHERE book_id IN (SELECT other_id FROM shared_book WHERE book_id = ?1) AND iif(json_valid(CAST(body AS TEXT)), json_extract(CAST(body AS TEXT), '$.type') = 'deferred.decided', 0)
),
differing AS MATERIALIZED (
    SELECT number
    FROM (
        SELECT number, decision AS state, 1 AS n FROM decided WHERE decision <> 'released'
        UNION ALL
        SELECT number, state, -1 FROM deferred
        WHERE book_id IN (SELECT other_id FROM shared_book WHERE book_id = ?1) AND state IN ('withdrawn', 'refused')
    )
    GROUP BY number, state
    HAVING sum(n) > 0 OR state = 'withdrawn' AND sum(n) < 0
)
SELECT number, state FROM deferred
WHERE book_id = ?1 AND (
    number IN (SELECT number FROM differing)
    OR (state = 'certified') <> EXISTS (SELECT 1 FROM certification
        WHERE id = attempt_id AND state = 'certified' AND coalesce(number_key, number) = deferred.number_key
            AND type = deferred.type)
        AND (EXISTS (SELECT 1 FROM certification WHERE id = attempt_id) OR NOT ?2)
    OR (state = 'begun') <> EXISTS (SELECT 1 FROM certification WHERE id = attempt_id AND seq IS NULL)
    OR state = 'refused' AND NOT EXISTS (SELECT 1 FROM certification WHERE id = attempt_id AND state = 'refused')
        AND NOT EXISTS (SELECT 1 FROM decided WHERE decided.number = deferred.number AND decision = 'refused')
)
ORDER BY id;

-- name: take_overs
SELECT 'taken over', nim, spare_nim, reason, iif(book_id = ?1, began_at, 0) FROM take_over_of WHERE ?1 IN (book_id, spare_id)
UNION ALL
SELECT 'taken back', nim, spare_nim, '', iif(book_id = ?1, ended_at, 0) FROM take_over_of WHERE ?1 IN (book_id, spare_id) AND ended_at IS NOT NULL;

-- name: chained_take_overs
SELECT step, entry_nim, spare, iif(step = 'taken over', reason, ''), iif(entry_nim GLOB substr(nim, 1, 10) || '*', at, 0)
FROM (
    SELECT book.nim, at, json_extract(CAST(body AS TEXT), '$.step') AS step, json_extract(CAST(body AS TEXT), '$.nim') AS entry_nim,
           json_extract(CAST(body AS TEXT), '$.spare') AS spare, json_extract(CAST(body AS TEXT), '$.reason') AS reason
    FROM entry JOIN book ON book.id = book_id
    WHERE book_id = ?1 AND iif(json_valid(CAST(body AS TEXT)), json_extract(CAST(body AS TEXT), '$.type') = 'spare', 0)
)
WHERE step IN ('taken over', 'taken back');

-- name: not_paired
SELECT count(*) FROM take_over
WHERE ?1 IN (book_id, spare_id)
    AND NOT EXISTS (SELECT 1 FROM machine_pair AS pair WHERE pair.book_id = take_over.book_id AND pair.spare_id = take_over.spare_id);

-- name: outbox
SELECT ref_id FROM outbox WHERE destination = ? AND book_id = ? AND type = ?;

-- name: closures
SELECT z_number FROM closure WHERE book_id = ? ORDER BY z_number;

-- name: unannounced
-- What an operator has taken over from the machine was not announced.
WITH announced AS MATERIALIZED (SELECT ref_id FROM event WHERE book_id = ?1 AND type = ?2)
SELECT seq, number FROM certification
WHERE book_id = ?1 AND state = 'certified' AND id NOT IN announced
    AND seq > (SELECT min(seq) FROM announced CROSS JOIN certification ON certification.id = ref_id)
    AND id NOT IN (SELECT attempt_id FROM settlement WHERE book_id = ?1 AND decision = 'adopted' AND attempt_id IS NOT NULL)
ORDER BY seq LIMIT 100;
