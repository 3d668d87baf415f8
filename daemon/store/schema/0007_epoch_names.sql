-- A certification carries the name that the machine had then: it is found by its place before the activations of its book.
CREATE INDEX entry_epoch ON entry (book_id, after_seq, id) WHERE json_extract(CAST(body AS TEXT), '$.type') = 'epoch';

-- The epoch of a certification is that of its outcome, not that of its intent.
UPDATE certification SET epoch = (
    SELECT count(*) + 1 FROM entry
    WHERE entry.book_id = certification.book_id AND json_extract(CAST(body AS TEXT), '$.type') = 'epoch'
        AND entry.after_seq < certification.seq)
WHERE state = 'certified'
    AND book_id IN (SELECT book_id FROM entry WHERE json_extract(CAST(body AS TEXT), '$.type') = 'epoch');
