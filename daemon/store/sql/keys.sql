-- name: insert
INSERT INTO api_key (nim, mode, label, hash, created_at) VALUES (?, ?, ?, ?, ?);

-- name: list
SELECT id, nim, mode, label, created_at, coalesce(revoked_at, 0) FROM api_key ORDER BY id;

-- name: by_hash
SELECT id, nim, mode, label, created_at, 0 FROM api_key WHERE hash = ? AND revoked_at IS NULL;

-- name: revoke
UPDATE api_key SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL;
