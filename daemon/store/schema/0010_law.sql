-- What the law asks of reports and paper: the ISF of each certification, the letterhead of then, acts that are found again.

-- Null in what 0.1 wrote: there it is in the invoice alone.
ALTER TABLE certification ADD COLUMN isf TEXT;
CREATE INDEX certification_isf ON certification (book_id, seq, isf, ended_at) WHERE state = 'certified' AND isf IS NOT NULL;

-- What stood above and below documents; named by the digest of its content, which the invoice holds and so the chain.
CREATE TABLE letterhead (
    book_id INTEGER NOT NULL REFERENCES book,
    digest  BLOB NOT NULL,
    at      INTEGER NOT NULL,  -- when it came into use last
    content BLOB NOT NULL,
    PRIMARY KEY (book_id, digest)
) STRICT;

CREATE INDEX entry_copy ON entry (book_id, json_extract(CAST(body AS TEXT), '$.code'))
    WHERE json_extract(CAST(body AS TEXT), '$.type') = 'copy';
CREATE INDEX entry_report ON entry (book_id, json_extract(CAST(body AS TEXT), '$.kind'), json_extract(CAST(body AS TEXT), '$.number'))
    WHERE json_extract(CAST(body AS TEXT), '$.type') = 'report';
CREATE INDEX entry_act ON entry (book_id, at) WHERE json_extract(CAST(body AS TEXT), '$.type') IN ('cash', 'copy', 'report');
