-- While one lasts, the spare certifies what the tills of the machine ask for (arrêté 2025-0049, article 6).
CREATE TABLE take_over (
    id       INTEGER PRIMARY KEY,
    book_id  INTEGER NOT NULL REFERENCES book,  -- of the machine that is out of order
    spare_id INTEGER NOT NULL REFERENCES book,
    began_at INTEGER NOT NULL,
    ended_at INTEGER,
    reason   TEXT NOT NULL
) STRICT;

CREATE INDEX take_over_book ON take_over (book_id);
CREATE INDEX take_over_spare ON take_over (spare_id);
CREATE UNIQUE INDEX take_over_lasts ON take_over (book_id) WHERE ended_at IS NULL;
CREATE UNIQUE INDEX take_over_spare_lasts ON take_over (spare_id) WHERE ended_at IS NULL;

CREATE VIEW take_over_of (id, book_id, nim, mode, spare_id, spare_nim, spare_mode, began_at, ended_at, reason) AS
SELECT take_over.id, book.id, book.nim, book.mode, spare.id, spare.nim, spare.mode, began_at, ended_at, reason
FROM take_over JOIN book ON book.id = take_over.book_id JOIN book AS spare ON spare.id = take_over.spare_id;

-- The books in which a number or a key of a book may stand, its own first: those of a machine and of whatever spare has stood for it.
CREATE VIEW shared_book (book_id, other_id) AS
SELECT id, id FROM book
UNION ALL
SELECT DISTINCT book_id, spare_id FROM take_over
UNION ALL
SELECT DISTINCT spare_id, book_id FROM take_over;

-- The books whose sales that wait a machine certifies: its own; the one for which it stands; that of its spare, which stands for nobody else now.
CREATE VIEW served_book (book_id, other_id) AS
SELECT id, id FROM book
UNION ALL
SELECT spare_id, book_id FROM take_over WHERE ended_at IS NULL
UNION ALL
SELECT book_id, spare_id FROM take_over AS ended
WHERE ended_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM take_over WHERE spare_id = ended.spare_id AND id > ended.id);
