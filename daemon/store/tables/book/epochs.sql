-- name: rename
UPDATE book SET nim = ? WHERE id = ?;

-- name: begin
UPDATE book
SET nim = ?, epoch = epoch + 1, tc = ?, fvc = ?, frc = ?, unexplained = unexplained + ?,
    last_number = CASE WHEN ? THEN '' ELSE last_number END
WHERE id = ?;

-- name: present
SELECT epoch, nim, tc, fvc, frc FROM book WHERE id = ?;

-- name: called
SELECT json_extract(CAST(body AS TEXT), '$.number') - 1 FROM entry
WHERE book_id = ? AND json_extract(CAST(body AS TEXT), '$.type') = 'epoch' AND json_extract(CAST(body AS TEXT), '$.was') = ?
ORDER BY after_seq DESC, id DESC LIMIT 1;

-- name: bind_keys
UPDATE api_key SET taxpayer = ? WHERE taxpayer = '' AND mode = ? AND (nim = ? OR nim GLOB ?);

-- name: retire
UPDATE book SET in_use = 0 WHERE mode = ? AND (nim = ? OR nim GLOB ?);

-- name: of_taxpayer
SELECT id, nim FROM book WHERE mode = ? AND (nim = ? OR nim GLOB ?) AND ifu = ? ORDER BY id DESC LIMIT 1;

-- name: take_up
UPDATE book SET in_use = 1, ifu = ? WHERE id = ?;
