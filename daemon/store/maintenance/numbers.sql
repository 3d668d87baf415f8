-- name: given
SELECT nim, mode, ifu, z_number FROM book;

-- name: revoked
SELECT hash FROM api_key WHERE revoked_at IS NOT NULL;

-- name: revoke
UPDATE api_key SET revoked_at = created_at WHERE hash = ? AND revoked_at IS NULL;

-- name: skip
UPDATE book SET z_number = ?, z_asked = 0 WHERE id = ?;

-- name: ask
UPDATE book SET z_asked = 1 WHERE id = ?;
