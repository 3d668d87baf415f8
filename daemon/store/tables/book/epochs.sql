-- name: rename
UPDATE book SET nim = ? WHERE id = ?;

-- name: begin
UPDATE book
SET nim = ?2, epoch = epoch + 1, tc = ?3, fvc = ?4, frc = ?5, unexplained = unexplained + ?6,
    last_number = CASE WHEN ?7 THEN '' ELSE last_number END, seen = CASE WHEN ?7 THEN ?8 ELSE seen END
WHERE id = ?1;

-- name: present
SELECT epoch, nim, tc, fvc, frc FROM book WHERE id = ?;

-- name: bind_keys
UPDATE api_key SET taxpayer = ? WHERE taxpayer = '' AND mode = ? AND (nim = ? OR nim GLOB ?);

-- name: retire
UPDATE book SET in_use = 0 WHERE mode = ? AND (nim = ? OR nim GLOB ?);

-- name: of_taxpayer
SELECT id, nim FROM book WHERE mode = ? AND (nim = ? OR nim GLOB ?) AND ifu = ? ORDER BY id DESC LIMIT 1;

-- name: take_up
UPDATE book SET in_use = 1, ifu = ? WHERE id = ?;

-- name: forget_sign
-- The box was not off while its machine was another one's.
DELETE FROM meta WHERE name = 'alive ' || ?;

-- name: go_on
-- What its machine counted for the other one is known, but in an older ledger, which lacks some of it.
UPDATE book SET (tc, fvc, frc, seen) = (SELECT tc, fvc, frc, seen FROM book WHERE id = ?1)
WHERE id = ?2 AND tc IS NOT NULL AND NOT EXISTS (SELECT 1 FROM book WHERE id IN (?1, ?2) AND (restored_at > 0 OR tc IS NULL));

-- name: own_end
-- How far its machine had counted beside its own sales it may never count again.
UPDATE total SET fvc_end = coalesce(
    (SELECT max(fvc) FROM certification WHERE book_id = ?1 AND seq > closed_seq AND state = 'certified'),
    (SELECT fvc FROM closure WHERE book_id = ?1 ORDER BY z_number DESC LIMIT 1), 0)
WHERE book_id = ?1;

-- name: place
SELECT seq, epoch FROM certification WHERE id = ? AND state = 'certified';

-- name: before
-- The newest of its type before it whose counter is known.
SELECT seq, fc, fvc, frc FROM (
    SELECT seq, state, epoch, type, fc, fvc, frc FROM certification WHERE book_id = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT ?5
) WHERE state = 'certified' AND epoch = ?3 AND type = ?4 AND fc >= 0 LIMIT 1;

-- name: after
-- The newest of all, likewise.
SELECT fc, fvc, frc FROM (
    SELECT state, epoch, type, fc, fvc, frc FROM certification WHERE book_id = ?1 AND seq > ?2 ORDER BY seq DESC LIMIT ?5
) WHERE state = 'certified' AND epoch = ?3 AND type = ?4 AND fc >= 0 LIMIT 1;

-- name: between
SELECT count(*) FROM certification
WHERE book_id = ? AND seq > ? AND seq < ? AND epoch = ? AND type = ? AND state = 'certified';
