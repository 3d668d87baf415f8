-- name: numbers
SELECT book.nim AS nim, book.mode AS mode, twin.seq AS seq, twin.number AS number, first.seq AS earlier, first.number AS same
FROM certification AS twin JOIN book ON book.id = twin.book_id
JOIN certification AS first ON first.book_id = twin.book_id
    AND coalesce(first.number_key, first.number) = coalesce(twin.number_key, twin.number) AND first.number_year = twin.number_year
    AND first.state NOT IN ('refused', 'abandoned') AND first.twin & 1 = 0
WHERE twin.twin & 1 = 1 AND twin.seq IS NOT NULL ORDER BY twin.id;

-- name: codes
SELECT book.nim AS nim, book.mode AS mode, twin.seq AS seq, twin.number AS number, first.seq AS earlier, first.number AS same
FROM certification AS twin JOIN book ON book.id = twin.book_id
JOIN certification AS first ON first.book_id = twin.book_id AND first.code = twin.code AND first.twin & 2 = 0
WHERE twin.twin & 2 = 2 ORDER BY twin.id;

-- name: series_numbers
SELECT number, number_year FROM certification WHERE book_id = ? AND state NOT IN ('refused', 'abandoned');
