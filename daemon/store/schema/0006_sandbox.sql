-- Where the book of a sandbox begins once its oldest records were let go of: what a recomputation would have found up to there.
CREATE TABLE book_start (
    book_id      INTEGER PRIMARY KEY REFERENCES book,
    seq          INTEGER NOT NULL,  -- the last record, closure and entry that are gone
    z_number     INTEGER NOT NULL,
    entry_id     INTEGER NOT NULL,
    at           INTEGER NOT NULL,
    hash         BLOB NOT NULL,
    running      BLOB NOT NULL,
    closed       BLOB NOT NULL,
    closed_seq   INTEGER NOT NULL,
    period_start INTEGER NOT NULL,
    fvc_start    INTEGER NOT NULL,
    deposits     INTEGER NOT NULL,  -- cash moved since the last Z that is gone
    withdrawals  INTEGER NOT NULL,
    counted_seq  INTEGER NOT NULL,  -- up to here `bytes` are what is kept
    counted_z    INTEGER NOT NULL,
    counted_id   INTEGER NOT NULL,
    bytes        INTEGER NOT NULL
) STRICT;
