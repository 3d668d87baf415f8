-- Who may do what (decision 28): roles and an end for keys, people who log in, and the audit log of what they did.

-- What every key could do before there were roles.
ALTER TABLE api_key ADD COLUMN role TEXT NOT NULL DEFAULT 'manager'
    CHECK (role IN ('seller', 'reader', 'manager', 'technician'));
ALTER TABLE api_key ADD COLUMN expires_at INTEGER NOT NULL DEFAULT 0;  -- 0: never
ALTER TABLE api_key ADD COLUMN used_at INTEGER NOT NULL DEFAULT 0;     -- to the minute

CREATE TABLE person (
    id          INTEGER PRIMARY KEY,
    name        TEXT NOT NULL UNIQUE,
    role        TEXT NOT NULL CHECK (role IN ('seller', 'reader', 'manager', 'technician')),
    password    TEXT NOT NULL,  -- scrypt$N$r$p$salt$hash
    created_at  INTEGER NOT NULL,
    disabled_at INTEGER NOT NULL DEFAULT 0
) STRICT;

-- A browser that is logged in, known by the SHA-256 of what its cookie holds.
CREATE TABLE session (
    hash      BLOB PRIMARY KEY,
    person_id INTEGER NOT NULL REFERENCES person,
    opened_at INTEGER NOT NULL,
    used_at   INTEGER NOT NULL,  -- to the minute
    address   TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX session_person ON session (person_id);

-- What was done to the box, by whom, from where; each entry chained to the one before it. Ids have no gaps.
CREATE TABLE audit (
    id      INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,
    actor   TEXT NOT NULL,
    address TEXT NOT NULL,
    action  TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail  TEXT NOT NULL,  -- a JSON object of texts
    hash    BLOB NOT NULL
) STRICT;
