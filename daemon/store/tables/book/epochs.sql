-- name: rename
UPDATE book SET nim = ? WHERE id = ?;

-- name: begin
UPDATE book
SET nim = ?2, epoch = epoch + 1, tc = ?3, fvc = ?4, frc = ?5, unexplained = unexplained + ?6,
    last_number = CASE WHEN ?7 THEN '' ELSE last_number END, seen = CASE WHEN ?7 THEN ?8 ELSE seen END
WHERE id = ?1;

-- name: present
SELECT epoch, nim, tc, fvc, frc FROM book WHERE id = ?;

-- name: bind_keys
UPDATE api_key SET taxpayer = ? WHERE taxpayer = '' AND mode = ? AND (nim = ? OR nim GLOB ?);

-- name: retire
UPDATE book SET in_use = 0 WHERE mode = ? AND (nim = ? OR nim GLOB ?);

-- name: of_taxpayer
SELECT id, nim FROM book WHERE mode = ? AND (nim = ? OR nim GLOB ?) AND ifu = ? ORDER BY id DESC LIMIT 1;

-- name: take_up
UPDATE book SET in_use = 1, ifu = ? WHERE id = ?;
