-- name: insert
INSERT INTO api_key (nim, mode, label, hash, created_at, role, expires_at, strict, lane, public_key, rate)
VALUES (:nim, :mode, :label, :hash, :at, :role, :expires_at, :strict, :lane, nullif(:public, x''), :rate);

-- name: list
SELECT id, nim, mode, label, created_at, coalesce(revoked_at, 0), role, expires_at, used_at, strict, lane, public_key, rate FROM api_key ORDER BY id;

-- name: by_hash
SELECT id, nim, mode, label, created_at, 0, role, expires_at, used_at, strict, lane, public_key, rate FROM api_key
WHERE hash = ? AND public_key IS NULL AND revoked_at IS NULL
      AND (taxpayer = '' OR taxpayer = (
          SELECT ifu FROM book
          WHERE book.mode = api_key.mode AND in_use
                AND substr(book.nim, 1, 10) = substr(api_key.nim, 1, 10)
          ORDER BY book.id DESC LIMIT 1
      ));

-- name: by_start_of_hash
SELECT id, nim, mode, label, created_at, 0, role, expires_at, used_at, strict, lane, public_key, rate FROM api_key
WHERE hash BETWEEN ? AND ? AND public_key IS NOT NULL AND revoked_at IS NULL
      AND (taxpayer = '' OR taxpayer = (
          SELECT ifu FROM book
          WHERE book.mode = api_key.mode AND in_use
                AND substr(book.nim, 1, 10) = substr(api_key.nim, 1, 10)
          ORDER BY book.id DESC LIMIT 1
      ));

-- name: of_the_relay
SELECT id, hash, nim, expires_at FROM api_key WHERE lane = 'relay' AND revoked_at IS NULL ORDER BY id DESC;

-- name: of_another_taxpayer
SELECT id FROM api_key
WHERE revoked_at IS NULL AND taxpayer <> '' AND taxpayer <> (
          SELECT ifu FROM book
          WHERE book.mode = api_key.mode AND in_use
                AND substr(book.nim, 1, 10) = substr(api_key.nim, 1, 10)
          ORDER BY book.id DESC LIMIT 1
      );

-- name: revoke
UPDATE api_key SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL;

-- name: used
UPDATE api_key SET used_at = max(used_at, ?) WHERE id = ?;
