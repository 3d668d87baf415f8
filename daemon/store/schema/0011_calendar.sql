-- Closures of months and years (0047 art. 23) are entries of the chain, found by their number.
CREATE INDEX entry_calendar ON entry (book_id, json_extract(CAST(body AS TEXT), '$.kind'), json_extract(CAST(body AS TEXT), '$.number'))
    WHERE json_extract(CAST(body AS TEXT), '$.type') = 'calendar';
