-- name: insert
INSERT INTO outbox (destination, book_id, type, ref_id, created_at) VALUES (?, ?, ?, ?, ?);

-- name: waiting_closures
SELECT outbox.id, book.nim, book.mode, closure.z_number, closure.report_id, closure.created_at, closure.body,
       closure.hash, outbox.sent_at, closure.id, closure.first_seq, closure.last_seq,
       before.report_id, before.hash, before.tc, before.fvc, before.frc,
       (SELECT json_group_array(json(CAST(body AS TEXT))) FROM entry
        WHERE entry.book_id = closure.book_id AND after_z < closure.z_number AND after_z >= coalesce(before.z_number, 0)
              AND CASE WHEN json_valid(CAST(body AS TEXT)) THEN json_extract(CAST(body AS TEXT), '$.type') = 'gap' END)
FROM outbox JOIN book ON book.id = outbox.book_id
     JOIN closure ON closure.book_id = outbox.book_id AND closure.z_number = outbox.ref_id
     LEFT JOIN closure AS before ON before.book_id = closure.book_id AND before.z_number =
         (SELECT max(z_number) FROM closure AS older
          WHERE older.book_id = closure.book_id AND older.z_number < closure.z_number)
WHERE outbox.destination = ? AND outbox.book_id = ?
      AND outbox.state = 'waiting' AND outbox.type = 'closure.created'
ORDER BY outbox.id LIMIT ?;

-- name: waiting_calendar
SELECT outbox.id AS id, book.nim AS nim, book.mode AS mode, json_extract(CAST(entry.body AS TEXT), '$.kind') AS kind,
       json_extract(CAST(entry.body AS TEXT), '$.number') AS z_number,
       json_extract(json_extract(CAST(entry.body AS TEXT), '$.body'), '$.report_id') AS report_id, entry.at AS created_at,
       CAST(json_extract(CAST(entry.body AS TEXT), '$.body') AS BLOB) AS body, entry.hash AS chain, outbox.sent_at AS last_sent
FROM outbox JOIN book ON book.id = outbox.book_id JOIN entry ON entry.id = outbox.ref_id
WHERE outbox.destination = ? AND outbox.book_id = ?
      AND outbox.state = 'waiting' AND outbox.type = 'calendar.closed'
ORDER BY outbox.id LIMIT ?;

-- name: waiting_events
SELECT id, book_id, type, ref_id, created_at AS at, tries, sent_at AS last_sent FROM outbox
WHERE destination = ? AND book_id = ? AND state = 'waiting' ORDER BY id LIMIT ?;

-- name: backlog
SELECT nim, mode, waiting, parked, oldest_at, last_error_at, last_sent_at, CASE WHEN last_error_at THEN
       (SELECT last_error FROM outbox WHERE destination = :destination AND book_id = of_book AND last_error_at = found.last_error_at
        ORDER BY id DESC LIMIT 1) ELSE '' END AS last_error
FROM (SELECT book.nim AS nim, book.mode AS mode, book.id AS of_book, sum(state = 'waiting') AS waiting, sum(state = 'parked') AS parked,
             coalesce(min(CASE WHEN state = 'waiting' THEN created_at END), 0) AS oldest_at,
             max(last_error_at) AS last_error_at, max(sent_at) AS last_sent_at
      FROM outbox JOIN book ON book.id = outbox.book_id WHERE destination = :destination GROUP BY book.id) AS found
ORDER BY of_book;

-- name: mark_sent
UPDATE outbox SET state = 'sent', sent_at = ?, tries = tries + 1 WHERE id = ?;

-- name: mark_failed
UPDATE outbox SET tries = tries + 1, last_error = ?, last_error_at = ?, next_at = ? WHERE id = ? AND state = 'waiting';

-- name: park
UPDATE outbox SET state = 'parked', tries = tries + 1, last_error = ?, last_error_at = ? WHERE id = ?;

-- name: count_parked
SELECT count(*) FROM outbox
WHERE destination = ? AND book_id IN (SELECT id FROM book WHERE nim = ? AND mode = ?)
      AND state = 'parked' AND last_error_at < ?;

-- name: offer_again
UPDATE outbox SET state = 'waiting', next_at = 0
WHERE destination = ? AND book_id IN (SELECT id FROM book WHERE nim = ? AND mode = ?)
      AND state = 'parked' AND last_error_at < ?;

-- name: refused
SELECT coalesce(closure.report_id, json_extract(json_extract(CAST(entry.body AS TEXT), '$.body'), '$.report_id')), outbox.last_error
FROM outbox LEFT JOIN closure ON outbox.type = 'closure.created' AND closure.book_id = outbox.book_id AND closure.z_number = outbox.ref_id
     LEFT JOIN entry ON outbox.type = 'calendar.closed' AND entry.id = outbox.ref_id
WHERE outbox.destination = ? AND outbox.book_id = ? AND outbox.state = 'parked';

-- name: replay_parked
UPDATE outbox SET state = 'waiting', next_at = 0
WHERE destination = ? AND state = 'parked'
      AND (? IS NULL OR book_id IN (SELECT id FROM book WHERE substr(nim, 1, 10) = substr(?, 1, 10)));

-- name: replay_from
-- A month or year goes with the Z behind it.
UPDATE outbox SET state = 'waiting', next_at = 0
WHERE destination = ? AND state <> 'waiting' AND ? <= CASE type
      WHEN 'closure.created' THEN ref_id
      WHEN 'calendar.closed' THEN (SELECT min(after.ref_id) FROM outbox AS after
          WHERE after.destination = outbox.destination AND after.book_id = outbox.book_id
                AND after.type = 'closure.created' AND after.id > outbox.id) END
      AND (? IS NULL OR book_id IN (SELECT id FROM book WHERE substr(nim, 1, 10) = substr(?, 1, 10)));

-- name: resend
UPDATE outbox SET state = 'waiting', next_at = 0
WHERE destination = ? AND book_id IN (SELECT id FROM book WHERE nim = ? AND mode = ?) AND state <> 'waiting' AND CASE type
      WHEN 'closure.created' THEN ref_id
      WHEN 'calendar.closed' THEN (SELECT min(after.ref_id) FROM outbox AS after
          WHERE after.destination = outbox.destination AND after.book_id = outbox.book_id
                AND after.type = 'closure.created' AND after.id > outbox.id) END BETWEEN ? AND ?;

-- name: move
UPDATE outbox SET destination = ? WHERE destination = ?;

-- name: destinations
SELECT DISTINCT destination FROM outbox;

-- name: forget_unsent
DELETE FROM outbox WHERE destination = ? AND state <> 'sent';

-- name: forget_sent
DELETE FROM outbox WHERE destination = ?;
