-- name: last_record
SELECT {record} FROM certification WHERE book_id = ? AND seq IS NOT NULL ORDER BY seq DESC LIMIT 1;

-- name: last_closure
SELECT {closure} FROM closure WHERE book_id = ? ORDER BY z_number DESC LIMIT 1;

-- name: unindexed
-- Read from the table, looked for in the indexes of the numbers and of what has not ended.
SELECT number FROM certification AS row NOT INDEXED
WHERE id > (SELECT max(id) FROM certification) - ? AND (
    state NOT IN ('refused', 'abandoned') AND NOT EXISTS (
        SELECT 1 FROM certification AS found INDEXED BY certification_number
        WHERE found.book_id = row.book_id AND found.number = row.number AND found.state NOT IN ('refused', 'abandoned')
            AND found.id = row.id)
    OR seq IS NULL AND NOT EXISTS (
        SELECT 1 FROM certification AS found INDEXED BY certification_open
        WHERE found.book_id = row.book_id AND found.seq IS NULL AND found.id = row.id)
) LIMIT 1;

-- name: constrained
SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%CHECK (%' ORDER BY name;

-- name: tables
SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name;
