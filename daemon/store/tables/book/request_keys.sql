-- name: find_key
SELECT fingerprint, attempt_id, z_number, answer FROM idempotency WHERE book_id = ? AND key_hash = ?;
