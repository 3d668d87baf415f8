-- Cash put into the drawer and taken out (decision 34): an entry of the book, found by its time.
ALTER TABLE entry ADD COLUMN chained_at INTEGER;  -- what the hash holds, where `at` was repaired since

CREATE INDEX entry_cash ON entry (book_id, at) WHERE json_extract(CAST(body AS TEXT), '$.type') = 'cash';
