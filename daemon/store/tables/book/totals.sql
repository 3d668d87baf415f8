-- name: read
SELECT seq, at, closed_seq, period_start, fvc_start, fvc_end, running, closed FROM total WHERE book_id = ?;

-- name: write
UPDATE total SET seq = :seq, at = :at, closed_seq = :closed_seq, period_start = :period_start, fvc_start = :fvc_start, fvc_end = :fvc_end,
                 running = :running, closed = :closed
WHERE book_id = :book;

-- name: behind
SELECT book.last_seq > total.seq FROM book JOIN total ON total.book_id = book.id WHERE book.id = ?;

-- name: head
SELECT last_seq, coalesce(fvc, 0) FROM book WHERE id = ?;

-- name: ended
SELECT seq, ended_at, type, fvc, tally FROM certification WHERE book_id = ? AND seq > ? ORDER BY seq LIMIT ?;

-- name: same_activation
-- Whether the sale with that FVC after the one record and the other record are of one activation.
SELECT EXISTS (SELECT 1 FROM certification AS sale JOIN certification AS other ON other.book_id = sale.book_id AND other.epoch = sale.epoch
    WHERE sale.book_id = ?1 AND sale.fvc = ?2 AND sale.seq > ?3 AND sale.seq < ?4 AND other.seq = ?4
          AND sale.state = 'certified' AND sale.type NOT IN ('FA', 'EA'));

-- name: checkpoint
INSERT INTO checkpoint (book_id, at, seq, running) VALUES (?, ?, ?, ?);

-- name: checkpoint_before
SELECT seq, running FROM checkpoint WHERE book_id = ? AND at < ? ORDER BY at DESC, seq DESC LIMIT 1;

-- name: checkpoint_from
SELECT seq FROM checkpoint WHERE book_id = ? AND at >= ? ORDER BY at, seq LIMIT 1;

-- name: checkpoint_at
SELECT seq, running FROM checkpoint
WHERE book_id = :book AND at <= (SELECT ended_at FROM certification WHERE book_id = :book AND seq = :seq) AND seq <= :seq
ORDER BY at DESC, seq DESC LIMIT 1;

-- name: tallies
SELECT tally FROM certification WHERE book_id = ? AND seq > ? AND seq <= ? AND ended_at < ? ORDER BY seq;

-- name: fvc_range
-- The lowest FVC of the sales of a range and the highest; a new activation counts anew. A sale that a person has entered may lie behind a later one.
WITH entered AS MATERIALIZED (
    SELECT sale.id, epoch, fvc FROM settlement CROSS JOIN certification AS sale ON sale.id = settlement.attempt_id
    WHERE settlement.book_id = :book AND decision = 'certified' AND seq > :after AND seq <= :upto AND ended_at >= :start AND ended_at < :end
          AND state = 'certified' AND type NOT IN ('FA', 'EA')
)
SELECT
    (SELECT fvc FROM (SELECT * FROM (SELECT epoch, fvc FROM certification
                                     WHERE book_id = :book AND seq > :after AND seq <= :upto AND ended_at >= :start AND ended_at < :end
                                           AND state = 'certified' AND type NOT IN ('FA', 'EA') ORDER BY seq LIMIT 1)
                      UNION ALL SELECT epoch, fvc FROM entered) ORDER BY epoch, fvc LIMIT 1),
    (SELECT fvc FROM (SELECT * FROM (SELECT epoch, fvc FROM certification
                                     WHERE book_id = :book AND seq > :after AND seq <= :upto AND ended_at >= :start AND ended_at < :end
                                           AND state = 'certified' AND type NOT IN ('FA', 'EA') AND id NOT IN (SELECT id FROM entered)
                                     ORDER BY seq DESC LIMIT 1)
                      UNION ALL SELECT epoch, fvc FROM entered) ORDER BY epoch DESC, fvc DESC LIMIT 1);

-- name: fvc_before
-- Of a certification or a closure. One that a person has entered may lie behind a later one.
WITH entered AS MATERIALIZED (
    SELECT record.id, epoch, fvc FROM settlement CROSS JOIN certification AS record ON record.id = settlement.attempt_id
    WHERE settlement.book_id = :book AND decision = 'certified' AND seq <= :upto AND ended_at < :end AND state = 'certified'
)
SELECT fvc FROM (
    SELECT epoch, fvc FROM entered
    UNION ALL
    SELECT * FROM (SELECT epoch, fvc FROM certification
                   WHERE book_id = :book AND seq <= :upto AND ended_at < :end AND state = 'certified' AND id NOT IN (SELECT id FROM entered)
                   ORDER BY seq DESC LIMIT 1)
    UNION ALL
    SELECT * FROM (SELECT (SELECT epoch FROM certification WHERE book_id = :book AND seq <= last_seq AND state = 'certified' ORDER BY seq DESC LIMIT 1),
                          fvc FROM closure WHERE book_id = :book AND created_at < :end ORDER BY z_number DESC LIMIT 1)
) ORDER BY epoch DESC, fvc DESC LIMIT 1;

-- name: isfs
WITH RECURSIVE known (isf) AS (
    SELECT min(isf) FROM certification WHERE book_id = :book AND state = 'certified' AND isf IS NOT NULL
    UNION ALL
    SELECT (SELECT min(isf) FROM certification WHERE book_id = :book AND state = 'certified' AND isf > known.isf)
    FROM known WHERE known.isf IS NOT NULL
)
SELECT isf FROM known
WHERE isf IS NOT NULL AND EXISTS (
    SELECT 1 FROM certification INDEXED BY certification_isf
    WHERE book_id = :book AND state = 'certified' AND certification.isf = known.isf
          AND seq > :after AND seq <= :upto AND ended_at >= :start AND ended_at < :end
);
