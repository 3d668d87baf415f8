-- name: read
SELECT value FROM meta WHERE name = ?;

-- name: write
INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value;
