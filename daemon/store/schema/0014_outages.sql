-- The register of outages (arrêté 2025-0049, articles 6 and 7): entries of the book, found by the number of their outage, and by the time of its end.
CREATE INDEX entry_outage ON entry (book_id, json_extract(CAST(body AS TEXT), '$.number'))
    WHERE json_extract(CAST(body AS TEXT), '$.type') IN ('outage', 'outage.ended', 'outage.notified');
CREATE INDEX entry_outage_ended ON entry (book_id, at) WHERE json_extract(CAST(body AS TEXT), '$.type') = 'outage.ended';

DROP INDEX entry_act;
CREATE INDEX entry_act ON entry (book_id, at)
    WHERE json_extract(CAST(body AS TEXT), '$.type') IN ('cash', 'copy', 'report', 'outage', 'outage.ended', 'outage.notified');

-- The outage during which a sale was made that is certified later, 0 for none.
ALTER TABLE deferred ADD COLUMN outage INTEGER NOT NULL DEFAULT 0;
CREATE INDEX deferred_outage ON deferred (book_id, outage) WHERE outage > 0;
