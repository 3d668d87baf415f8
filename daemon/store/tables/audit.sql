-- name: last
SELECT id, hash FROM audit ORDER BY id DESC LIMIT 1;

-- name: insert
INSERT INTO audit (id, at, actor, address, action, subject, detail, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: newest_first
SELECT id, at, actor, address, action, subject, detail, hash FROM audit WHERE id < ? ORDER BY id DESC LIMIT ?;

-- name: oldest_first
SELECT id, at, actor, address, action, subject, detail, hash FROM audit WHERE id > ? ORDER BY id LIMIT ?;
