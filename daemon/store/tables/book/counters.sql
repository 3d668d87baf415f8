-- name: place
SELECT seq, epoch FROM certification WHERE id = ? AND state = 'certified';

-- name: before
-- The newest of its type before it whose counter the machine told.
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
