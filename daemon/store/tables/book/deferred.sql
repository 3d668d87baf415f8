-- name: insert
INSERT INTO deferred (book_id, key, key_hash, fingerprint, request_id, number, number_key, type, total_ttc, sold_at, address, outage, payload)
VALUES (:book, :key, :key_hash, :fingerprint, :request_id, :number, :number_key, :type, :total_ttc, :sold_at, :address, :outage, :payload)
RETURNING id;

-- name: is_number_held
SELECT EXISTS (SELECT 1 FROM deferred
    WHERE book_id IN (SELECT other_id FROM shared_book WHERE book_id = ?) AND number_key = ? AND state IN ('waiting', 'begun', 'doubtful'));

-- name: begin
UPDATE deferred SET state = 'begun', attempt_id = ? WHERE id = ? AND book_id IN (SELECT other_id FROM shared_book WHERE book_id = ?) AND state = 'waiting';

-- name: find_of_machine
SELECT {columns} FROM deferred
WHERE book_id IN (SELECT other_id FROM shared_book WHERE book_id = ?) AND number_key = ? AND type = ? AND total_ttc = ? AND state IN ('waiting', 'doubtful');

-- name: adopt
UPDATE deferred SET state = 'certified', attempt_id = ?, ended_at = ?, payload = NULL WHERE id = ?;

-- name: follow
-- Not certified, it waits again; where an older ledger was put back and its machine, or that of the attempt, was not compared yet, a person says so.
UPDATE deferred SET
    state = CASE WHEN ?1 THEN 'certified' WHEN (SELECT max(restored_at) FROM book WHERE id IN (deferred.book_id, (SELECT book_id FROM certification WHERE id = ?3))) THEN 'doubtful' ELSE 'waiting' END,
    ended_at = CASE WHEN ?1 THEN ?2 ELSE 0 END,
    payload = CASE WHEN ?1 THEN NULL ELSE payload END
WHERE attempt_id = ?3 AND state = 'begun';

-- name: end
UPDATE deferred SET state = ?, ended_at = ?, why = ?, payload = NULL
WHERE id = ? AND book_id IN (SELECT other_id FROM shared_book WHERE book_id = ?) AND state IN ('waiting', 'doubtful');

-- name: release
UPDATE deferred SET state = 'waiting', why = '' WHERE id = ? AND book_id IN (SELECT other_id FROM shared_book WHERE book_id = ?) AND state = 'doubtful';

-- name: doubt
UPDATE deferred SET state = 'doubtful', why = ? WHERE book_id IN (SELECT other_id FROM shared_book WHERE book_id = ?) AND state = 'waiting';

-- name: next
-- One step into the index of open ones for each book; it is chosen by its own condition, word for word.
SELECT {columns} FROM deferred WHERE id = (SELECT min((SELECT id FROM deferred
    WHERE book_id = other_id AND state = 'waiting' AND state IN ('waiting', 'begun', 'doubtful') AND id NOT IN (SELECT value FROM json_each(?2)) ORDER BY id LIMIT 1))
    FROM served_book WHERE book_id = ?1);

-- name: by_key
-- The open one, else the newest.
SELECT {columns} FROM deferred WHERE book_id IN (SELECT other_id FROM shared_book WHERE book_id = ?) AND key_hash = ? ORDER BY state IN ('waiting', 'begun', 'doubtful') DESC, id DESC LIMIT 1;

-- name: by_id
SELECT {columns} FROM deferred WHERE id = ? AND book_id IN (SELECT other_id FROM shared_book WHERE book_id = ?);

-- name: by_address
SELECT book_id, {columns} FROM deferred WHERE address = ?;

-- name: open
SELECT {columns} FROM deferred WHERE book_id IN (SELECT other_id FROM served_book WHERE book_id = ?) AND state IN ('waiting', 'begun', 'doubtful') AND id > ? ORDER BY id LIMIT ?;

-- name: waiting
SELECT {columns} FROM deferred WHERE book_id = ? AND state = 'waiting' AND state IN ('waiting', 'begun', 'doubtful') ORDER BY id;

-- name: backlog
-- Of a pair the one that certifies them counts them, so that no sale stands in two reports.
SELECT count(*), coalesce(sum(total_ttc), 0), coalesce(min(sold_at), 0), coalesce(sum(state = 'doubtful'), 0)
FROM deferred WHERE book_id IN (SELECT other_id FROM served_book WHERE book_id = ?1) AND state IN ('waiting', 'begun', 'doubtful')
    AND (book_id <> ?1 OR NOT EXISTS (SELECT 1 FROM served_book WHERE other_id = ?1 AND book_id <> ?1));

-- name: highest_number
SELECT count(*), coalesce(max(number_key), '') FROM deferred
WHERE book_id IN (SELECT other_id FROM shared_book WHERE book_id = ?1) AND number_key >= ?2 AND number_key < ?2 || ':' AND number_key GLOB ?3 AND state IN ('waiting', 'begun', 'doubtful') AND state <> 'begun';
