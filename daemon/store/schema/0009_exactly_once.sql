-- Equal numbers are one number (decision 37), a code stands once in a book, and a book knows the last invoice that it saw on its machine.

-- The one spelling of equal numbers (`core.invoice.number`); null where `number` is spelled so itself.
ALTER TABLE certification ADD COLUMN number_key TEXT;
-- What 0.1.0 wrote twice stays as it is: 1 where an earlier row has an equal number, 2 where one has its code, 3 for both.
ALTER TABLE certification ADD COLUMN twin INTEGER NOT NULL DEFAULT 0;

UPDATE certification SET number_key = number_key(number) WHERE number_key(number) <> number;

UPDATE certification SET twin = twin | 1 WHERE id IN (
    SELECT id FROM (
        SELECT id, row_number() OVER (PARTITION BY book_id, coalesce(number_key, number) ORDER BY seq IS NULL, seq, id) AS place
        FROM certification WHERE state IN ('begun', 'certified', 'disputed'))
    WHERE place > 1);

UPDATE certification SET twin = twin | 2 WHERE id IN (
    SELECT id FROM (
        SELECT id, row_number() OVER (PARTITION BY book_id, code ORDER BY seq, id) AS place
        FROM certification WHERE code IS NOT NULL)
    WHERE place > 1);

-- No number is ever certified twice, however it is spelled: whoever holds it keeps it, from the intent on.
CREATE UNIQUE INDEX certification_key ON certification (book_id, coalesce(number_key, number))
    WHERE state IN ('begun', 'certified', 'disputed') AND twin & 1 = 0;

DROP INDEX certification_code;
CREATE UNIQUE INDEX certification_code ON certification (book_id, code) WHERE code IS NOT NULL AND twin & 2 = 0;

-- The machine's last invoice when `tc`, `fvc` and `frc` were read, as JSON; null: not written down yet.
ALTER TABLE book ADD COLUMN seen TEXT;
