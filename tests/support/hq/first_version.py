"""The tables of headquarters' first version, as it made them, and databases as later ones have left them."""

import re

from sqlalchemy import Connection

from headquarters.store.tables import STEPS, upgrade

TABLES = """
CREATE TABLE api_key (hash TEXT NOT NULL, id TEXT NOT NULL, role TEXT NOT NULL, label TEXT NOT NULL, added_at BIGINT
  NOT NULL, revoked_at BIGINT, PRIMARY KEY (hash));
CREATE TABLE book (machine TEXT NOT NULL, mode TEXT NOT NULL, max_z BIGINT NOT NULL, held BIGINT NOT NULL, told_z
  BIGINT NOT NULL, last {bytes}, closed_at BIGINT NOT NULL, received_at BIGINT NOT NULL, asked_at BIGINT NOT NULL,
  PRIMARY KEY (machine, mode));
CREATE TABLE box (machine TEXT NOT NULL, nim TEXT NOT NULL, label TEXT NOT NULL, region TEXT NOT NULL, closes_at
  INTEGER, usual_at INTEGER, usual_days INTEGER NOT NULL, added_at BIGINT NOT NULL, PRIMARY KEY (machine));
CREATE INDEX box_region ON box (region, machine);
CREATE TABLE box_key (machine TEXT NOT NULL, key_id TEXT NOT NULL, line TEXT NOT NULL, added_at BIGINT NOT NULL,
  revoked_at BIGINT, PRIMARY KEY (machine, key_id));
CREATE TABLE closure (machine TEXT NOT NULL, id TEXT NOT NULL, nim TEXT NOT NULL, mode TEXT NOT NULL, ledger_id TEXT
  NOT NULL, epoch BIGINT NOT NULL, z BIGINT NOT NULL, day TEXT NOT NULL, period_start BIGINT NOT NULL, period_end
  BIGINT NOT NULL, created_at BIGINT NOT NULL, received_at BIGINT NOT NULL, certs BIGINT NOT NULL, ttc BIGINT NOT
  NULL, ht BIGINT NOT NULL, tva BIGINT NOT NULL, groups {bytes} NOT NULL, payments {bytes} NOT NULL, held {bytes} NOT
  NULL, previous_id TEXT, proven BOOLEAN, key_id TEXT NOT NULL, via TEXT NOT NULL, stream_seq BIGINT, PRIMARY KEY
  (machine, id));
CREATE INDEX closure_day ON closure (mode, day, machine);
CREATE INDEX closure_number ON closure (machine, mode, z);
CREATE UNIQUE INDEX closure_z ON closure (machine, mode, ledger_id, epoch, z);
CREATE TABLE evidence (id {serial} NOT NULL, at BIGINT NOT NULL, via TEXT NOT NULL, reason TEXT NOT NULL, nim TEXT NOT
  NULL, detail TEXT NOT NULL, headers TEXT NOT NULL, body {bytes} NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (id),
  UNIQUE (digest));
CREATE INDEX evidence_reason ON evidence (reason, id);
CREATE TABLE finding (id {serial} NOT NULL, kind TEXT NOT NULL, machine TEXT NOT NULL, nim TEXT NOT NULL, mode TEXT
  NOT NULL, "key" TEXT NOT NULL, facts TEXT NOT NULL, found_at BIGINT NOT NULL, seen_at BIGINT, seen_by TEXT,
  solved_at BIGINT, solved_by TEXT, note TEXT, told INTEGER NOT NULL, claimed_until BIGINT NOT NULL, PRIMARY KEY (id));
CREATE INDEX finding_machine ON finding (machine, mode);
CREATE UNIQUE INDEX finding_open ON finding (machine, mode, kind, "key") WHERE solved_at IS NULL;
CREATE INDEX finding_told ON finding (told, found_at);
CREATE TABLE message (machine TEXT NOT NULL, id TEXT NOT NULL, headers TEXT NOT NULL, body {bytes} NOT NULL, PRIMARY
  KEY (machine, id));
CREATE TABLE meta (name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (name));
CREATE TABLE person (name TEXT NOT NULL, password TEXT NOT NULL, role TEXT NOT NULL, disabled BOOLEAN NOT NULL,
  added_at BIGINT NOT NULL, PRIMARY KEY (name));
CREATE TABLE position (stream TEXT NOT NULL, seq BIGINT NOT NULL, PRIMARY KEY (stream));
CREATE TABLE presence (machine TEXT NOT NULL, at BIGINT NOT NULL, received_at BIGINT NOT NULL, body {bytes} NOT NULL,
  PRIMARY KEY (machine));
CREATE INDEX presence_received ON presence (received_at);
CREATE TABLE refused (day TEXT NOT NULL, via TEXT NOT NULL, reason TEXT NOT NULL, count BIGINT NOT NULL, PRIMARY KEY
  (day, via, reason));
CREATE TABLE session (hash TEXT NOT NULL, name TEXT NOT NULL, begun_at BIGINT NOT NULL, used_at BIGINT NOT NULL,
  PRIMARY KEY (hash));
CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num));
INSERT INTO alembic_version VALUES ('0001')
"""
KINDS = {
    "sqlite": {"bytes": "BLOB", "serial": "INTEGER"},
    "postgresql": {"bytes": "BYTEA", "serial": "SERIAL"},
}


def make_tables(connection: Connection, version: str) -> None:
    for statement in TABLES.format(**KINDS[connection.dialect.name]).split(";"):
        connection.exec_driver_sql(statement)
    upgrade(connection, version)


def undo_names(connection: Connection) -> None:
    """The tables of today with the names that they had before step 0011."""
    for statement in reversed(STEPS["0011"]):
        match statement.split():
            case ["CREATE", "INDEX", name, *_]:
                older = f"DROP INDEX {name}"
            case ["DROP", "INDEX", name]:
                [older] = re.findall(rf"CREATE INDEX {name} ON [^;]*", ";".join([TABLES, *STEPS["0005"]]))
            case ["ALTER", "TABLE", table, "RENAME", "COLUMN", name, "TO", new]:
                older = f"ALTER TABLE {table} RENAME COLUMN {new} TO {name}"
            case ["ALTER", "TABLE", table, "RENAME", "TO", new]:
                older = f"ALTER TABLE {new} RENAME TO {table}"
        connection.exec_driver_sql(older)
