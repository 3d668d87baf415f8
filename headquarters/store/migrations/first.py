"""The tables of the first version. Written here once, for the migration and for `tables.py`; from its release on it never changes (a test
holds it): what comes later is a migration of its own, and an addition in `tables.py`.

Times are milliseconds since 1970, amounts whole XOF."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)

metadata = MetaData()

Table(
    "meta",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

Table(
    "box",
    metadata,
    Column("machine", Text, primary_key=True),
    Column("nim", Text, nullable=False),
    Column("label", Text, nullable=False),
    Column("region", Text, nullable=False),
    Column("closes_at", Integer),  # minute of the day, set by a person; None: learnt
    Column("usual_at", Integer),  # learnt: minutes after 04:00
    Column("usual_days", Integer, nullable=False),  # learnt: bit 0 is Monday
    Column("added_at", BigInteger, nullable=False),
    Index("box_region", "region", "machine"),
)

Table(
    "box_key",
    metadata,
    Column("machine", Text, nullable=False),
    Column("key_id", Text, nullable=False),
    Column("line", Text, nullable=False),  # whpk_… or whsec_…, as `exchange.keys.verifying_key` reads it
    Column("added_at", BigInteger, nullable=False),
    Column("revoked_at", BigInteger),
    PrimaryKeyConstraint("machine", "key_id"),
)

Table(
    "book",
    metadata,
    Column("machine", Text, nullable=False),
    Column("mode", Text, nullable=False),
    Column("max_z", BigInteger, nullable=False),
    Column("held", BigInteger, nullable=False),  # closures of it in the table; fewer than max_z when some are missing
    Column("told_z", BigInteger, nullable=False),  # the box says it has closed that one
    Column("last", LargeBinary),  # the Held of max_z
    Column("closed_at", BigInteger, nullable=False),  # when max_z was made
    Column("received_at", BigInteger, nullable=False),
    Column("asked_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("machine", "mode"),
)

Table(
    "closure",
    metadata,
    Column("machine", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("nim", Text, nullable=False),
    Column("mode", Text, nullable=False),
    Column("ledger_id", Text, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("z", BigInteger, nullable=False),
    Column("day", Text, nullable=False),
    Column("period_start", BigInteger, nullable=False),
    Column("period_end", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("received_at", BigInteger, nullable=False),
    Column("certs", BigInteger, nullable=False),
    Column("ttc", BigInteger, nullable=False),
    Column("ht", BigInteger, nullable=False),
    Column("tva", BigInteger, nullable=False),
    Column("groups", LargeBinary, nullable=False),  # MessagePack: [[group, ht, tva, ttc], …]
    Column("payments", LargeBinary, nullable=False),  # MessagePack: [[label, amount], …]
    Column("held", LargeBinary, nullable=False),  # MessagePack of `core.held.Held`
    Column("previous_id", Text),
    Column("proven", Boolean),
    Column("key_id", Text, nullable=False),
    Column("via", Text, nullable=False),
    Column("stream_seq", BigInteger),
    PrimaryKeyConstraint("machine", "id"),  # not the id alone: nobody takes another shop's id first
    Index("closure_z", "machine", "mode", "ledger_id", "epoch", "z", unique=True),
    Index("closure_number", "machine", "mode", "z"),
    Index("closure_day", "mode", "day", "machine"),
)

Table(
    "message",
    metadata,
    Column("machine", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("headers", Text, nullable=False),  # JSON
    Column("body", LargeBinary, nullable=False),
    PrimaryKeyConstraint("machine", "id"),
)

Table(
    "presence",
    metadata,
    Column("machine", Text, primary_key=True),
    Column("at", BigInteger, nullable=False),  # by the box's clock
    Column("received_at", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),  # JSON as it came
    Index("presence_received", "received_at"),
)

Table(
    "finding",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("kind", Text, nullable=False),
    Column("machine", Text, nullable=False),
    Column("nim", Text, nullable=False),
    Column("mode", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("facts", Text, nullable=False),  # JSON
    Column("found_at", BigInteger, nullable=False),
    Column("seen_at", BigInteger),
    Column("seen_by", Text),
    Column("solved_at", BigInteger),
    Column("solved_by", Text),  # empty: by itself
    Column("note", Text),
    Column("told", Integer, nullable=False),  # 0: nobody yet, 1: that it is there, 2: that it is solved
    Column("claimed_until", BigInteger, nullable=False),  # an instance is telling it
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
    Column("day", Text, nullable=False),
    Column("via", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("count", BigInteger, nullable=False),
    PrimaryKeyConstraint("day", "via", "reason"),
)

Table(
    "evidence",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("at", BigInteger, nullable=False),
    Column("via", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("nim", Text, nullable=False),  # as it says; only of a fork it is proven
    Column("detail", Text, nullable=False),
    Column("headers", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("digest", Text, nullable=False, unique=True),  # the same message again is the same evidence
    Index("evidence_reason", "reason", "id"),
)

Table(
    "position",
    metadata,
    Column("stream", Text, primary_key=True),
    Column("seq", BigInteger, nullable=False),
)

Table(
    "person",
    metadata,
    Column("name", Text, primary_key=True),
    Column("password", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("disabled", Boolean, nullable=False),
    Column("added_at", BigInteger, nullable=False),
)

Table(
    "session",
    metadata,
    Column("hash", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("begun_at", BigInteger, nullable=False),
    Column("used_at", BigInteger, nullable=False),
)

Table(
    "api_key",
    metadata,
    Column("hash", Text, primary_key=True),
    Column("id", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("label", Text, nullable=False),
    Column("added_at", BigInteger, nullable=False),
    Column("revoked_at", BigInteger),
)
