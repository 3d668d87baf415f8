-- A number may be taken for a year instead of for ever (SFE 2.18, [numbering] unique).

-- The year of the shop's clock in which the number is taken; 0: for ever.
ALTER TABLE certification ADD COLUMN number_year INTEGER NOT NULL DEFAULT 0;

DROP INDEX certification_key;
CREATE UNIQUE INDEX certification_key ON certification (book_id, coalesce(number_key, number), number_year)
    WHERE state IN ('begun', 'certified', 'disputed') AND twin & 1 = 0;

-- For looking up as spelled: what is unique says the index above.
DROP INDEX certification_number;
CREATE INDEX certification_number ON certification (book_id, number) WHERE state IN ('begun', 'certified', 'disputed');
