-- The condition of the two indexes of the numbers is a list of two: of three, SQLite makes a table anew for each row that it writes.
DROP INDEX certification_key;
CREATE UNIQUE INDEX certification_key ON certification (book_id, coalesce(number_key, number), number_year)
    WHERE state NOT IN ('refused', 'abandoned') AND twin & 1 = 0;

DROP INDEX certification_number;
CREATE INDEX certification_number ON certification (book_id, number) WHERE state NOT IN ('refused', 'abandoned');
