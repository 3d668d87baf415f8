-- name: keep
INSERT INTO letterhead (book_id, digest, at, content) VALUES (?, ?, ?, ?)
ON CONFLICT (book_id, digest) DO UPDATE SET at = max(at, excluded.at);

-- name: find
SELECT content FROM letterhead WHERE book_id = ? AND digest = ?;

-- name: newest
SELECT digest, content FROM letterhead WHERE book_id = ? ORDER BY at DESC LIMIT 1;
