-- What a credit note is booked on, whichever machine of this box certifies it: null until that was looked for, 0 for no sale of this ledger.
-- (`reference_fvc` and `reference_epoch` are what 0.1.0 found it by; nothing is written there any more.)
ALTER TABLE certification ADD COLUMN original_id INTEGER;

UPDATE certification SET original_id = coalesce(
    (SELECT sale.id FROM certification AS sale
     WHERE sale.book_id = certification.book_id AND sale.epoch = certification.reference_epoch
         AND sale.fvc = certification.reference_fvc AND sale.state = 'certified' AND sale.type NOT IN ('FA', 'EA')
         AND (sale.type IN ('EV', 'ET')) = (certification.type = 'EA')
     ORDER BY sale.seq LIMIT 1),
    (SELECT sale.id FROM certification AS sale
     WHERE sale.book_id = certification.book_id AND sale.epoch = certification.reference_epoch
         AND sale.fvc = certification.reference_fvc AND sale.state = 'certified' AND sale.type NOT IN ('FA', 'EA')
     ORDER BY sale.seq LIMIT 1))
WHERE reference_fvc IS NOT NULL AND state IN ('begun', 'certified', 'disputed');

DROP INDEX certification_reference;
CREATE INDEX certification_original ON certification (original_id) WHERE original_id > 0;
CREATE INDEX certification_unresolved ON certification (book_id)
    WHERE original_id IS NULL AND type IN ('FA', 'EA') AND state IN ('certified', 'disputed');

-- The counter of its type that the machine told with the certification: null where that was not kept yet, -1 where it was not told.
ALTER TABLE certification ADD COLUMN fc INTEGER;

CREATE INDEX certification_export ON certification (book_id, epoch, fc)
    WHERE type IN ('EV', 'ET') AND state = 'certified' AND fc >= 0;

-- Who moved cash, and when by the box's own clock, which may be set: how many are too many in an hour is counted by it.
ALTER TABLE entry ADD COLUMN actor TEXT NOT NULL DEFAULT '';
ALTER TABLE entry ADD COLUMN noted_at INTEGER NOT NULL DEFAULT 0;

CREATE INDEX entry_noted ON entry (book_id, actor, noted_at) WHERE actor <> '';
