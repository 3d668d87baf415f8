-- Two machines that were configured as a pair before the taxpayer of both was known are none once it is another one: no number, key or sale that
-- waits of one is the other's.
DROP VIEW served_book;
DROP VIEW shared_book;

CREATE VIEW shared_book (book_id, other_id) AS
SELECT id, id FROM book
UNION ALL
SELECT first.id, spare.id FROM machine_pair JOIN book AS first ON first.id = book_id JOIN book AS spare ON spare.id = spare_id
WHERE first.ifu = spare.ifu OR '' IN (first.ifu, spare.ifu)
UNION ALL
SELECT spare.id, first.id FROM machine_pair JOIN book AS first ON first.id = book_id JOIN book AS spare ON spare.id = spare_id
WHERE first.ifu = spare.ifu OR '' IN (first.ifu, spare.ifu);

-- The books whose sales that wait a machine certifies: its own; the one for which it stands; that of its spare, which stands for nobody else now.
CREATE VIEW served_book (book_id, other_id) AS
SELECT id, id FROM book
UNION ALL
SELECT take_over.spare_id, take_over.book_id FROM take_over JOIN shared_book ON shared_book.book_id = spare_id AND other_id = take_over.book_id
WHERE ended_at IS NULL
UNION ALL
SELECT ended.book_id, ended.spare_id FROM take_over AS ended JOIN shared_book ON shared_book.book_id = ended.book_id AND other_id = ended.spare_id
WHERE ended_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM take_over WHERE spare_id = ended.spare_id AND id > ended.id);
