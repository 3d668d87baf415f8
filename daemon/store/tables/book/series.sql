-- name: count_numbers
-- As many digits as the series has, so that text order is that of the numbers.
SELECT count(*), coalesce(max(coalesce(number_key, number)), '') FROM certification
WHERE book_id IN (SELECT other_id FROM shared_book WHERE book_id = ?1) AND coalesce(number_key, number) >= ?2 AND coalesce(number_key, number) < ?2 || ':' AND coalesce(number_key, number) GLOB ?3
    AND state IN ('begun', 'certified', 'disputed') AND twin & 1 = 0;

-- name: is_reserved
-- Spelled so, or equal to it, or by a sale that waits.
SELECT EXISTS (SELECT 1 FROM certification
        WHERE book_id IN (SELECT other_id FROM shared_book WHERE book_id = ?1) AND number = ?2 AND state IN ('begun', 'certified', 'disputed'))
    OR EXISTS (SELECT 1 FROM certification
        WHERE book_id IN (SELECT other_id FROM shared_book WHERE book_id = ?1) AND coalesce(number_key, number) = ?3
            AND state IN ('begun', 'certified', 'disputed') AND twin & 1 = 0)
    OR EXISTS (SELECT 1 FROM deferred
        WHERE book_id IN (SELECT other_id FROM shared_book WHERE book_id = ?1) AND number_key = ?3 AND state IN ('waiting', 'begun', 'doubtful'));
