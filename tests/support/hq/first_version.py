"""The tables of headquarters' first version, as it made them, and databases as later ones have left them.

Times are milliseconds since 1970, amounts whole XOF; columns are NOT NULL unless they are written out."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)
from sqlalchemy.types import TypeEngine

from headquarters.store.tables import upgrade

metadata = MetaData()


def _of(kind: type[TypeEngine[Any]], *names: str) -> list[Column[Any]]:
    return [Column(name, kind, nullable=False) for name in names]


def _texts(*names: str) -> list[Column[Any]]:
    return _of(Text, *names)


def _numbers(*names: str) -> list[Column[Any]]:
    return _of(BigInteger, *names)


def _named(name: str) -> Column[str]:
    return Column(name, Text, primary_key=True)


Table("meta", metadata, _named("name"), *_texts("value"))

# closes_at: minute of the day, set by a person; None: learnt. usual_at, learnt: minutes after 04:00. usual_days, learnt: bit 0 is Monday.
Table(
    "box",
    metadata,
    _named("machine"),
    *_texts("nim", "label", "region"),
    Column("closes_at", Integer),
    Column("usual_at", Integer),
    *_of(Integer, "usual_days"),
    *_numbers("added_at"),
    Index("box_region", "region", "machine"),
)

# line: whpk_… or whsec_…, as `common.wire.keys.verifying_key` reads it
Table(
    "box_key",
    metadata,
    *_texts("machine", "key_id", "line"),
    *_numbers("added_at"),
    Column("revoked_at", BigInteger),
    PrimaryKeyConstraint("machine", "key_id"),
)

# held: closures of it in the table, fewer than max_z when some are missing. told_z: the box says it has closed that one. last: the Held of
# max_z, made at closed_at.
Table(
    "book",
    metadata,
    *_texts("machine", "mode"),
    *_numbers("max_z", "held", "told_z"),
    Column("last", LargeBinary),
    *_numbers("closed_at", "received_at", "asked_at"),
    PrimaryKeyConstraint("machine", "mode"),
)

# In MessagePack: groups [[group, ht, tva, ttc], …], payments [[label, amount], …], held `core.held.Held`. The key is not the id alone: nobody
# takes another shop's id first.
Table(
    "closure",
    metadata,
    *_texts("machine", "id", "nim", "mode", "ledger_id"),
    *_numbers("epoch", "z"),
    *_texts("day"),
    *_numbers("period_start", "period_end", "created_at", "received_at", "certs", "ttc", "ht", "tva"),
    *_of(LargeBinary, "groups", "payments", "held"),
    Column("previous_id", Text),
    Column("proven", Boolean),
    *_texts("key_id", "via"),
    Column("stream_seq", BigInteger),
    PrimaryKeyConstraint("machine", "id"),
    Index("closure_z", "machine", "mode", "ledger_id", "epoch", "z", unique=True),
    Index("closure_number", "machine", "mode", "z"),
    Index("closure_day", "mode", "day", "machine"),
)

# The headers are JSON.
Table(
    "message",
    metadata,
    *_texts("machine", "id", "headers"),
    *_of(LargeBinary, "body"),
    PrimaryKeyConstraint("machine", "id"),
)

# at: by the box's clock. body: JSON as it came.
Table(
    "presence",
    metadata,
    _named("machine"),
    *_numbers("at", "received_at"),
    *_of(LargeBinary, "body"),
    Index("presence_received", "received_at"),
)

# facts: JSON. solved_by: empty for by itself. told: 0 nobody yet, 1 that it is there, 2 that it is solved. claimed_until: an instance is
# telling it.
Table(
    "finding",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    *_texts("kind", "machine", "nim", "mode", "key", "facts"),
    *_numbers("found_at"),
    Column("seen_at", BigInteger),
    Column("seen_by", Text),
    Column("solved_at", BigInteger),
    Column("solved_by", Text),
    Column("note", Text),
    *_of(Integer, "told"),
    *_numbers("claimed_until"),
    Index(
        "finding_open",
        *("machine", "mode", "kind", "key"),
        unique=True,
        sqlite_where=text("solved_at IS NULL"),
        postgresql_where=text("solved_at IS NULL"),
    ),
    Index("finding_machine", "machine", "mode"),
    Index("finding_told", "told", "found_at"),
)

Table(
    "refused",
    metadata,
    *_texts("day", "via", "reason"),
    *_numbers("count"),
    PrimaryKeyConstraint("day", "via", "reason"),
)

# nim: as it says; only of a fork it is proven. digest: the same message again is the same evidence.
Table(
    "evidence",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    *_numbers("at"),
    *_texts("via", "reason", "nim", "detail", "headers"),
    *_of(LargeBinary, "body"),
    Column("digest", Text, nullable=False, unique=True),
    Index("evidence_reason", "reason", "id"),
)

Table("position", metadata, _named("stream"), *_numbers("seq"))

Table(
    "person",
    metadata,
    _named("name"),
    *_texts("password", "role"),
    *_of(Boolean, "disabled"),
    *_numbers("added_at"),
)

Table("session", metadata, _named("hash"), *_texts("name"), *_numbers("begun_at", "used_at"))

Table(
    "api_key",
    metadata,
    _named("hash"),
    *_texts("id", "role", "label"),
    *_numbers("added_at"),
    Column("revoked_at", BigInteger),
)


def make_tables(connection: Connection, version: str) -> None:
    metadata.create_all(connection, checkfirst=False)
    number = "version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)"
    connection.exec_driver_sql(f"CREATE TABLE alembic_version ({number})")
    connection.exec_driver_sql("INSERT INTO alembic_version VALUES ('0001')")
    upgrade(connection, version)
