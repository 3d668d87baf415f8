-- Sales that are certified later: validated and answered 202, with their number and key taken, in the order in which they came.
CREATE TABLE deferred (
    id          INTEGER PRIMARY KEY,
    book_id     INTEGER NOT NULL REFERENCES book,
    key         TEXT NOT NULL,      -- the Idempotency-Key
    key_hash    BLOB NOT NULL,
    fingerprint BLOB NOT NULL,
    request_id  TEXT NOT NULL,
    number      TEXT NOT NULL,
    number_key  TEXT NOT NULL,      -- the one spelling of equal numbers
    type        TEXT NOT NULL,
    total_ttc   INTEGER NOT NULL,
    sold_at     INTEGER NOT NULL,
    address     TEXT NOT NULL,      -- of the customer's page; nobody can guess it
    -- begun: an attempt is under way or in doubt; doubtful: an older ledger was put back, it may have been certified since
    state       TEXT NOT NULL DEFAULT 'waiting'
        CHECK (state IN ('waiting', 'begun', 'doubtful', 'certified', 'refused', 'withdrawn')),
    attempt_id  INTEGER,            -- the newest attempt
    ended_at    INTEGER NOT NULL DEFAULT 0,
    why         TEXT NOT NULL DEFAULT '',
    payload     BLOB                -- the invoice, until it has ended
) STRICT;

CREATE UNIQUE INDEX deferred_number ON deferred (book_id, number_key) WHERE state IN ('waiting', 'begun', 'doubtful');
CREATE UNIQUE INDEX deferred_open_key ON deferred (book_id, key_hash) WHERE state IN ('waiting', 'begun', 'doubtful');
CREATE INDEX deferred_key ON deferred (book_id, key_hash);
CREATE INDEX deferred_line ON deferred (book_id, state, id) WHERE state IN ('waiting', 'begun', 'doubtful');
CREATE INDEX deferred_attempt ON deferred (attempt_id) WHERE attempt_id IS NOT NULL;
CREATE UNIQUE INDEX deferred_address ON deferred (address);
