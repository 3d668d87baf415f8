-- A machine and a spare of it: a number or a key of one stands in the book of the other too, whichever certifies, and whichever an older copy of the
-- ledger has certifying.
CREATE TABLE machine_pair (
    book_id  INTEGER NOT NULL REFERENCES book,  -- of the machine
    spare_id INTEGER NOT NULL REFERENCES book,
    PRIMARY KEY (book_id, spare_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX machine_pair_spare ON machine_pair (spare_id);

INSERT INTO machine_pair (book_id, spare_id) SELECT DISTINCT book_id, spare_id FROM take_over;

DROP VIEW shared_book;
CREATE VIEW shared_book (book_id, other_id) AS
SELECT id, id FROM book
UNION ALL
SELECT book_id, spare_id FROM machine_pair
UNION ALL
SELECT spare_id, book_id FROM machine_pair;

-- When a person has said that the machine is lost for good, which an older copy of the ledger was put back without; 0: nobody has, since.
ALTER TABLE book ADD COLUMN lost_at INTEGER NOT NULL DEFAULT 0;
