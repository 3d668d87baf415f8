-- What waits at the spare, which stands for nobody now, is the machine's whether or not it ever stood for one: it may have been the machine before
-- the two were exchanged in the configuration.
DROP VIEW served_book;
CREATE VIEW served_book (book_id, other_id) AS
SELECT id, id FROM book
UNION ALL
SELECT take_over.spare_id, take_over.book_id FROM take_over JOIN shared_book ON shared_book.book_id = spare_id AND other_id = take_over.book_id
WHERE ended_at IS NULL
UNION ALL
SELECT pair.book_id, pair.spare_id FROM machine_pair AS pair JOIN shared_book ON shared_book.book_id = pair.book_id AND other_id = pair.spare_id
WHERE NOT EXISTS (SELECT 1 FROM take_over WHERE spare_id = pair.spare_id AND (ended_at IS NULL OR book_id <> pair.book_id)
    AND id > coalesce((SELECT max(id) FROM take_over WHERE book_id = pair.book_id AND spare_id = pair.spare_id AND ended_at IS NOT NULL), 0));
