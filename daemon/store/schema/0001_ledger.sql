-- The ledger, first version. Money is whole XOF, times are milliseconds since 1970 in UTC.
PRAGMA application_id = 1835230820;  -- 'mcfd'

-- Facts about the file itself: when it was backed up, when it was put back.
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- One NIM in one mode. What the book knows of its machine, the head of its chain, its numbers.
CREATE TABLE book (
    id          INTEGER PRIMARY KEY,
    nim         TEXT NOT NULL,
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
    UNIQUE (nim, mode)
) STRICT;

-- Every attempt, from its intent to its end. The columns that a search reads come before the large ones.
CREATE TABLE certification (
    id            INTEGER PRIMARY KEY,
    book_id       INTEGER NOT NULL REFERENCES book,
    seq           INTEGER,  -- the order in which things ended; null until then
    state         TEXT NOT NULL CHECK (state IN ('begun', 'certified', 'refused', 'abandoned', 'disputed')),
    number        TEXT NOT NULL,
    type          TEXT NOT NULL,
    total_ttc     INTEGER NOT NULL,
    begun_at      INTEGER NOT NULL,
    ended_at      INTEGER,
    base_tc       INTEGER NOT NULL,
    base_fvc      INTEGER NOT NULL,
    base_frc      INTEGER NOT NULL,
    tc            INTEGER,
    fvc           INTEGER,
    frc           INTEGER,
    reference_fvc INTEGER,  -- of a credit note on an invoice of this machine
    line_ms       INTEGER,
    duration_ms   INTEGER,
    code          TEXT,
    machine_time  TEXT,
    ifu           TEXT,
    reason        TEXT,
    request_id    TEXT,
    hash          BLOB,     -- the chain up to here
    tally         BLOB,     -- what it adds to the totals, so that adding up need not unpack it
    payload       BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX certification_seq ON certification (book_id, seq) WHERE seq IS NOT NULL;
CREATE INDEX certification_open ON certification (book_id) WHERE seq IS NULL;
-- No number is ever certified twice: whoever holds it keeps it, from the intent on.
CREATE UNIQUE INDEX certification_number ON certification (book_id, number)
    WHERE state IN ('begun', 'certified', 'disputed');
CREATE INDEX certification_failed_number ON certification (book_id, number)
    WHERE state IN ('refused', 'abandoned');
CREATE INDEX certification_code ON certification (book_id, code) WHERE code IS NOT NULL;
CREATE INDEX certification_sale ON certification (book_id, fvc)
    WHERE state = 'certified' AND type NOT IN ('FA', 'EA');
CREATE INDEX certification_reference ON certification (book_id, reference_fvc) WHERE reference_fvc IS NOT NULL;

-- The totals as the last tick left them: everything up to seq. A report is running minus closed.
CREATE TABLE total (
    book_id      INTEGER PRIMARY KEY REFERENCES book,
    seq          INTEGER NOT NULL DEFAULT 0,
    at           INTEGER NOT NULL DEFAULT 0,
    closed_seq   INTEGER NOT NULL DEFAULT 0,  -- the last seq of the last Z
    period_start INTEGER NOT NULL DEFAULT 0,
    fvc_start    INTEGER NOT NULL DEFAULT 0,
    fvc_end      INTEGER NOT NULL DEFAULT 0,
    running      BLOB NOT NULL,
    closed       BLOB NOT NULL
) STRICT;

-- The running totals every 64 entries and at the end of each local day, so that a range costs two look-ups.
CREATE TABLE checkpoint (
    book_id INTEGER NOT NULL REFERENCES book,
    at      INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    running BLOB NOT NULL,
    PRIMARY KEY (book_id, at, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE closure (
    id           INTEGER PRIMARY KEY,
    book_id      INTEGER NOT NULL REFERENCES book,
    z_number     INTEGER NOT NULL,
    report_id    TEXT NOT NULL UNIQUE,
    period_start INTEGER NOT NULL,
    period_end   INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    certs_count  INTEGER NOT NULL,
    total_ttc    INTEGER NOT NULL,
    tc           INTEGER NOT NULL,
    fvc          INTEGER NOT NULL,
    frc          INTEGER NOT NULL,
    unexplained  INTEGER NOT NULL,
    first_seq    INTEGER NOT NULL,  -- first_seq = last_seq + 1 in an empty period
    last_seq     INTEGER NOT NULL,
    hash         BLOB NOT NULL,
    body         BLOB NOT NULL,
    UNIQUE (book_id, z_number)
) STRICT;

CREATE INDEX closure_created ON closure (book_id, created_at);

-- An Idempotency-Key and what it stands for: an attempt, a closure, or an answer kept as it was.
CREATE TABLE idempotency (
    book_id     INTEGER NOT NULL REFERENCES book,
    key_hash    BLOB NOT NULL,
    fingerprint BLOB NOT NULL,
    at          INTEGER NOT NULL,
    attempt_id  INTEGER,
    z_number    INTEGER,
    answer      BLOB,
    PRIMARY KEY (book_id, key_hash)
) STRICT, WITHOUT ROWID;

CREATE TABLE api_key (
    id         INTEGER PRIMARY KEY,
    nim        TEXT NOT NULL,
    mode       TEXT NOT NULL CHECK (mode IN ('live', 'test')),
    label      TEXT NOT NULL,
    hash       BLOB NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;

-- What happened, for screens and webhooks; small rows that point at the record, kept a week.
CREATE TABLE event (
    id      INTEGER PRIMARY KEY,
    book_id INTEGER NOT NULL REFERENCES book,
    type    TEXT NOT NULL,
    ref_id  INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    detail  TEXT NOT NULL DEFAULT ''
) STRICT;

-- What is to be sent where. One lane per destination and book, in order.
CREATE TABLE outbox (
    id            INTEGER PRIMARY KEY,
    destination   TEXT NOT NULL,
    book_id       INTEGER NOT NULL REFERENCES book,
    type          TEXT NOT NULL,
    ref_id        INTEGER NOT NULL,  -- closure.created: the z_number; cert.issued: the attempt
    created_at    INTEGER NOT NULL,
    state         TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'sent', 'parked')),
    tries         INTEGER NOT NULL DEFAULT 0,
    next_at       INTEGER NOT NULL DEFAULT 0,
    sent_at       INTEGER NOT NULL DEFAULT 0,
    last_error    TEXT NOT NULL DEFAULT '',
    last_error_at INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX outbox_lane ON outbox (destination, book_id, id);
CREATE INDEX outbox_waiting ON outbox (destination, book_id, id) WHERE state = 'waiting';

-- What an operator decided, and what the machine's attention said at that moment.
CREATE TABLE settlement (
    id         INTEGER PRIMARY KEY,
    book_id    INTEGER NOT NULL REFERENCES book,
    at         INTEGER NOT NULL,
    decision   TEXT NOT NULL CHECK (decision IN ('certified', 'abandoned', 'adopted', 'cleared')),
    attempt_id INTEGER REFERENCES certification,
    attention  TEXT NOT NULL,
    reason     TEXT NOT NULL
) STRICT;
