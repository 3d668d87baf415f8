-- The life of an attempt: books by machine and taxpayer, activations as epochs, entries in the chain, times that were repaired.

-- Two taxpayers may have had the same machine, one after the other: a book is found by machine, mode and taxpayer.
CREATE TABLE book_2 (
    id          INTEGER PRIMARY KEY,
    nim         TEXT NOT NULL,               -- as the machine has it in the newest epoch
    mode        TEXT NOT NULL CHECK (mode IN ('live', 'test')),
    tc          INTEGER,  -- known counters; null until the machine was read once
    fvc         INTEGER,
    frc         INTEGER,
    last_number TEXT NOT NULL DEFAULT '',
    last_at     INTEGER NOT NULL DEFAULT 0,
    last_seq    INTEGER NOT NULL DEFAULT 0,
    head        BLOB NOT NULL,
    rates       TEXT NOT NULL DEFAULT '{}',
    ifu         TEXT NOT NULL DEFAULT '',
    attention   TEXT NOT NULL DEFAULT '',
    unexplained INTEGER NOT NULL DEFAULT 0,
    z_number    INTEGER NOT NULL DEFAULT 0,
    restored_at INTEGER NOT NULL DEFAULT 0,  -- put back from a backup and not yet compared with the machine
    epoch       INTEGER NOT NULL DEFAULT 1,
    z_asked     INTEGER NOT NULL DEFAULT 0,  -- 1: nobody remembers the last Z number; none is given until somebody says it
    accepted_to INTEGER NOT NULL DEFAULT 0,  -- an operator has confirmed a clock up to here (ms)
    repairs     INTEGER NOT NULL DEFAULT 0,  -- how often the time was set back
    in_use      INTEGER NOT NULL DEFAULT 1   -- 0: the machine has another taxpayer now
) STRICT;

INSERT INTO book_2 (id, nim, mode, tc, fvc, frc, last_number, last_at, last_seq, head, rates, ifu, attention, unexplained, z_number,
                    restored_at)
SELECT id, nim, mode, tc, fvc, frc, last_number, last_at, last_seq, head, rates, ifu, attention, unexplained, z_number, restored_at
FROM book;

DROP TABLE book;
ALTER TABLE book_2 RENAME TO book;
CREATE INDEX book_machine ON book (mode, nim);

ALTER TABLE certification ADD COLUMN epoch INTEGER NOT NULL DEFAULT 1;
ALTER TABLE certification ADD COLUMN reference_epoch INTEGER NOT NULL DEFAULT 1;  -- the epoch of `reference_fvc`
ALTER TABLE certification ADD COLUMN chained_at INTEGER;  -- what the hash holds, where `ended_at` was repaired since

DROP INDEX certification_sale;
CREATE INDEX certification_sale ON certification (book_id, epoch, fvc)
    WHERE state = 'certified' AND type NOT IN ('FA', 'EA');

ALTER TABLE closure ADD COLUMN chained_at INTEGER;     -- the same of `created_at` and `period_end`
ALTER TABLE closure ADD COLUMN chained_start INTEGER;  -- and of `period_start`

-- What the book says of itself between its records; `core.ledger.entries`.
CREATE TABLE entry (
    id        INTEGER PRIMARY KEY,
    book_id   INTEGER NOT NULL REFERENCES book,
    after_seq INTEGER NOT NULL,
    after_z   INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    body      BLOB NOT NULL,
    hash      BLOB NOT NULL
) STRICT;

CREATE INDEX entry_place ON entry (book_id, after_seq, after_z, id);

-- A key is for one taxpayer: empty until the machine has another one than when the key was made.
ALTER TABLE api_key ADD COLUMN taxpayer TEXT NOT NULL DEFAULT '';
