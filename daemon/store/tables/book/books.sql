-- name: find
SELECT id, nim FROM book WHERE mode = ? AND (nim = ? OR nim GLOB ?) ORDER BY in_use DESC, nim = ? DESC, id DESC LIMIT 1;

-- name: insert
INSERT INTO book (nim, mode, head) VALUES (?, ?, ?) RETURNING id;

-- name: insert_total
INSERT INTO total (book_id, running, closed) VALUES (?, ?, ?);

-- name: all
SELECT id, nim, mode FROM book ORDER BY id;

-- name: of_taxpayer
SELECT book.id, book.nim, book.mode FROM book JOIN book AS mine ON mine.id = ?
WHERE book.mode = mine.mode AND (book.ifu = mine.ifu OR '' IN (book.ifu, mine.ifu)) ORDER BY book.id;

-- name: perhaps_to_decide
-- Every book with an open case (daemon/core/ledger/decision.py) is among them.
SELECT id, nim, mode FROM book
WHERE attention <> '' OR restored_at > 0 OR EXISTS (SELECT 1 FROM take_over WHERE book.id IN (book_id, spare_id)) ORDER BY id;

-- name: former
SELECT id, nim, mode FROM book WHERE mode = ? AND (nim = ? OR nim GLOB ?) AND id <> ? AND in_use = 0 ORDER BY id;

-- name: named
SELECT id FROM book WHERE nim = ? AND mode = ?;

-- name: live_of_machine
-- The machine's first live book, and the one itself; of a sandbox, the newest.
SELECT min(live.id), max(live.id) FROM book AS live JOIN book AS one ON one.id = ?
WHERE live.mode = 'live' AND (one.mode = 'test' OR live.id <= one.id)
      AND substr(live.nim || '-', 1, instr(live.nim || '-', '-')) = substr(one.nim || '-', 1, instr(one.nim || '-', '-'));

-- name: state
-- A taxpayer that version 0.1.0 has overwritten is that of the last certification.
SELECT tc, fvc, frc, nim, last_number,
       max(last_at, coalesce((SELECT max(begun_at) FROM certification WHERE book_id = book.id AND seq IS NULL), 0)), last_seq, rates,
       coalesce(nullif(ifu, ''),
                (SELECT ifu FROM certification
                 WHERE book_id = book.id AND seq IS NOT NULL AND state = 'certified' AND ifu <> '' ORDER BY seq DESC LIMIT 1), ''),
       attention, unexplained, z_number, epoch, z_asked > 0, restored_at,
       coalesce((SELECT code FROM certification WHERE book_id = book.id AND seq IS NOT NULL AND state = 'certified' AND certification.epoch = book.epoch
                 ORDER BY seq DESC LIMIT 1), ''),
       CASE WHEN restored_at THEN coalesce((SELECT value FROM meta WHERE name = 'lost_writes'), '') ELSE '' END,
       accepted_to, repairs, seen, in_use
FROM book WHERE id = ?;

-- name: head
SELECT last_seq, last_at, head FROM book WHERE id = ?;

-- name: advance
UPDATE book SET last_seq = ?, last_at = ?, head = ? WHERE id = ?;

-- name: advance_certified
UPDATE book SET last_seq = ?, last_at = ?, head = ?, tc = ?, fvc = ?, frc = ?, last_number = ?, seen = ?,
                unexplained = max(0, unexplained + ?)
WHERE id = ?;

-- name: reconciled_state
SELECT tc, fvc, frc, rates, ifu, seen, restored_at FROM book WHERE id = ?;

-- name: reconcile
UPDATE book SET tc = ?, fvc = ?, frc = ?, rates = ?, ifu = ?, seen = ?, unexplained = unexplained + ?,
                last_at = max(last_at, ?), restored_at = 0, lost_at = 0
WHERE id = ?;

-- name: raise_fvc
UPDATE total SET fvc_end = max(fvc_end, ?)
WHERE book_id = ? AND seq = (SELECT last_seq FROM book WHERE id = total.book_id);

-- name: know
UPDATE book SET tc = ?, fvc = ?, frc = ?, last_number = ?, seen = ? WHERE id = ?;

-- name: attend
UPDATE book SET attention = ?, last_at = max(last_at, ?) WHERE id = ?;

-- name: accept_time
UPDATE book SET accepted_to = ?;

-- name: read
SELECT seq, z_number, entry_id, at, hash, running, closed, closed_seq, period_start, fvc_start, deposits, withdrawals,
       counted_seq, counted_z, counted_id, bytes
FROM book_start WHERE book_id = ?;

-- name: write
INSERT OR REPLACE INTO book_start (seq, z_number, entry_id, at, hash, running, closed, closed_seq, period_start, fvc_start, deposits,
                                   withdrawals, counted_seq, counted_z, counted_id, bytes, book_id)
VALUES (:seq, :z_number, :entry_id, :at, :hash, :running, :closed, :closed_seq, :period_start, :fvc_start, :deposits,
        :withdrawals, :counted_seq, :counted_z, :counted_id, :byte_count, :book);

-- name: standing
SELECT z_number, coalesce((SELECT hash FROM closure WHERE book_id = book.id AND closure.z_number = book.z_number), x''),
       last_seq, head, tc, fvc, frc,
       coalesce((SELECT ended_at FROM certification WHERE book_id = book.id AND seq IS NOT NULL AND state = 'certified'
                 ORDER BY seq DESC LIMIT 1), 0),
       z_asked
FROM book WHERE id = ?;
