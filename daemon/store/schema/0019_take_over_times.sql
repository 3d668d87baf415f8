-- A take-over begins and ends at the times of its entries in the chain of the machine, with which `mcfd verify` compares it: they may have been written
-- a moment after the decision.
WITH step AS (
    SELECT book_id, at, json_extract(CAST(body AS TEXT), '$.step') AS step,
           row_number() OVER (PARTITION BY book_id, json_extract(CAST(body AS TEXT), '$.step') ORDER BY entry.id) AS place
    FROM entry JOIN book ON book.id = book_id
    WHERE json_extract(CAST(body AS TEXT), '$.type') = 'spare' AND json_extract(CAST(body AS TEXT), '$.step') IN ('taken over', 'taken back')
        AND substr(json_extract(CAST(body AS TEXT), '$.nim'), 1, 10) = substr(book.nim, 1, 10)
), counted AS (
    SELECT id, book_id, row_number() OVER (PARTITION BY book_id ORDER BY id) AS place FROM take_over
), chained AS (
    SELECT counted.id,
           (SELECT at FROM step WHERE step.book_id = counted.book_id AND step.place = counted.place AND step = 'taken over') AS began_at,
           (SELECT at FROM step WHERE step.book_id = counted.book_id AND step.place = counted.place AND step = 'taken back') AS ended_at
    FROM counted
)
UPDATE take_over SET began_at = coalesce(chained.began_at, take_over.began_at),
                     ended_at = CASE WHEN take_over.ended_at IS NOT NULL THEN coalesce(chained.ended_at, take_over.ended_at) END
FROM chained WHERE chained.id = take_over.id;
