-- name: newest_first
SELECT id, hash FROM audit ORDER BY id DESC;

-- name: hash
SELECT hash FROM audit WHERE id = ?;

-- name: changed
SELECT DISTINCT substr(subject, 6) FROM audit
WHERE id > ? AND action IN ('user.created', 'user.password_changed', 'user.disabled');

-- name: logins
SELECT name, role, password, disabled_at FROM person;

-- name: write
UPDATE person SET role = ?, password = ?, disabled_at = ? WHERE name = ?;
