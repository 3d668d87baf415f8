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

-- name: first_sale
SELECT fvc FROM certification
WHERE book_id = ? AND seq > ? AND seq <= ? AND ended_at >= ? AND ended_at < ?
      AND state = 'certified' AND type NOT IN ('FA', 'EA') ORDER BY seq LIMIT 1;

-- name: last_sale
SELECT fvc FROM certification
WHERE book_id = ? AND seq > ? AND seq <= ? AND ended_at >= ? AND ended_at < ?
      AND state = 'certified' AND type NOT IN ('FA', 'EA') ORDER BY seq DESC LIMIT 1;

-- name: fvc_before
SELECT fvc FROM certification
WHERE book_id = ? AND seq <= ? AND ended_at < ? AND state = 'certified' ORDER BY seq DESC LIMIT 1;

-- name: closed_before
SELECT fvc FROM closure WHERE book_id = ? AND created_at < ? ORDER BY z_number DESC LIMIT 1;

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
