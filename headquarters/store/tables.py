"""Current definition of the tables: a new database gets them as defined here, an older one by the `STEPS` (a test
compares both).

Times are milliseconds since 1970, amounts whole XOF; columns are NOT NULL unless they are optional or written out.

A step runs in the caller's transaction. Released steps never change."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

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
    inspect,
    text,
)
from sqlalchemy.types import TypeEngine

metadata = MetaData()

STEPS: Final[dict[str, tuple[str, ...]]] = {
    "0001": (),
    "0002": (
        "ALTER TABLE book ADD COLUMN ledger TEXT",
        "CREATE TABLE ledger (machine TEXT NOT NULL, ledger_id TEXT NOT NULL, accepted_at BIGINT NOT NULL, accepted_by TEXT NOT NULL, PRIMARY KEY (machine, ledger_id))",
    ),
    "0003": (
        "ALTER TABLE book ADD COLUMN told_by TEXT",
        "ALTER TABLE presence ADD COLUMN key_id TEXT",
    ),
    "0004": ("ALTER TABLE box_key ADD COLUMN stolen_since BIGINT",),
    "0005": (
        "ALTER TABLE box ADD COLUMN changed_at BIGINT",
        "ALTER TABLE box ADD COLUMN retired_at BIGINT",
        "ALTER TABLE person ADD COLUMN changed_at BIGINT",
        "ALTER TABLE box_key ADD COLUMN restored BIGINT",
        "CREATE TABLE telling (finding BIGINT NOT NULL, teller TEXT NOT NULL, told INTEGER NOT NULL, claimed_until BIGINT NOT NULL, tries INTEGER NOT NULL, PRIMARY KEY (finding, teller))",
        "CREATE INDEX telling_told ON telling (teller, told)",
        "ALTER TABLE closure ADD COLUMN arrival BIGINT NOT NULL DEFAULT '0'",
        "CREATE INDEX closure_arrival ON closure (mode, arrival, machine, z, id)",
    ),
    "0006": (
        "CREATE TABLE taken (stream TEXT NOT NULL, created TEXT NOT NULL, ranges {bytes} NOT NULL, PRIMARY KEY (stream, created))",
        "ALTER TABLE book ADD COLUMN asked {bytes}",
    ),
    "0007": (
        "CREATE TABLE calendar_closure (machine TEXT NOT NULL, id TEXT NOT NULL, nim TEXT NOT NULL, mode TEXT NOT NULL, kind TEXT NOT NULL, number BIGINT NOT NULL, period TEXT NOT NULL, ledger_id TEXT NOT NULL, epoch BIGINT NOT NULL, created_at BIGINT NOT NULL, received_at BIGINT NOT NULL, zs BIGINT NOT NULL, first_z BIGINT, last_z BIGINT, certs BIGINT NOT NULL, ttc BIGINT NOT NULL, ht BIGINT NOT NULL, tva BIGINT NOT NULL, grand_ttc BIGINT NOT NULL, digest {bytes} NOT NULL, body {bytes} NOT NULL, key_id TEXT NOT NULL, via TEXT NOT NULL, PRIMARY KEY (machine, id))",
        "CREATE INDEX calendar_closure_number ON calendar_closure (machine, mode, kind, number)",
    ),
    "0008": (
        "CREATE TABLE join_code (hash TEXT NOT NULL, nims TEXT NOT NULL, label TEXT NOT NULL, region TEXT NOT NULL, made_at BIGINT NOT NULL, ends_at BIGINT NOT NULL, made_by TEXT NOT NULL, used_by TEXT, used_at BIGINT, PRIMARY KEY (hash))",
        "ALTER TABLE presence ADD COLUMN boots {bytes}",
    ),
}
HEAD: Final = max(STEPS)
_VERSION: Final = "alembic_version"
"""Table of the version; named by Alembic, which ran the first steps."""


def _of(kind: type[TypeEngine[Any]], *names: str) -> list[Column[Any]]:
    return [Column(name, kind, nullable=False) for name in names]


def _optional(kind: type[TypeEngine[Any]], *names: str) -> list[Column[Any]]:
    return [Column(name, kind) for name in names]


_texts, _numbers = partial(_of, Text), partial(_of, BigInteger)


def _named(name: str) -> Column[str]:
    return Column(name, Text, primary_key=True)


meta = Table("meta", metadata, _named("name"), *_texts("value"))

# closes_at: minute of the day, set by a person; None: learnt. usual_at (learnt): minutes after 04:00. usual_days
# (learnt): bit 0 is Monday. changed_at: last change by a person; None: before this was stored. retired_at: since when
# the shop is closed for good.
box = Table(
    "box",
    metadata,
    _named("machine"),
    *_texts("nim", "label", "region"),
    *_optional(Integer, "closes_at", "usual_at"),
    *_of(Integer, "usual_days"),
    *_numbers("added_at"),
    *_optional(BigInteger, "changed_at", "retired_at"),
    Index("box_region", "region", "machine"),
)

# line: whpk_… or whsec_…, see `common.wire.keys.verifying_key`. stolen_since: closures received under the key since
# then (headquarters' clock) were withdrawn; None: never stolen. restored: time of the last revocation that was undone.
box_key = Table(
    "box_key",
    metadata,
    *_texts("machine", "key_id", "line"),
    *_numbers("added_at"),
    *_optional(BigInteger, "revoked_at", "stolen_since", "restored"),
    PrimaryKeyConstraint("machine", "key_id"),
)

# hash: SHA-256 of a join code for one box. nims: JSON. used_by: public key (whpk_…) of the joined box.
join_code = Table(
    "join_code",
    metadata,
    _named("hash"),
    *_texts("nims", "label", "region"),
    *_numbers("made_at", "ends_at"),
    *_texts("made_by"),
    *_optional(Text, "used_by"),
    *_optional(BigInteger, "used_at"),
)

# held: stored closures of the book, fewer than max_z if some are missing. told_z: last Z stated by the box; told_by:
# key of this statement; None: before this was stored, like key_id of a presence. last: ClosureRecord of max_z, created
# at closed_at. ledger: accepted ledger; None: the first one. asked: requested ranges with their times, in MessagePack
# (`core.checks`).
book = Table(
    "book",
    metadata,
    *_texts("machine", "mode"),
    *_numbers("max_z", "held", "told_z"),
    *_optional(LargeBinary, "last"),
    *_numbers("closed_at", "received_at", "asked_at"),
    *_optional(Text, "ledger", "told_by"),
    *_optional(LargeBinary, "asked"),
    PrimaryKeyConstraint("machine", "mode"),
)

# The newest of a machine is valid.
ledger = Table(
    "ledger",
    metadata,
    *_texts("machine", "ledger_id"),
    *_numbers("accepted_at"),
    *_texts("accepted_by"),
    PrimaryKeyConstraint("machine", "ledger_id"),
)

# In MessagePack: groups [[group, ht, tva, ttc], …], payments [[label, amount], …], held `core.checks.ClosureRecord`.
# The key includes the machine, so that no shop can occupy another one's id. arrival: number of the storing
# transaction; 0: before this was numbered.
closure = Table(
    "closure",
    metadata,
    *_texts("machine", "id", "nim", "mode", "ledger_id"),
    *_numbers("epoch", "z"),
    *_texts("day"),
    *_numbers("period_start", "period_end", "created_at", "received_at", "certs", "ttc", "ht", "tva"),
    *_of(LargeBinary, "groups", "payments", "held"),
    *_optional(Text, "previous_id"),
    *_optional(Boolean, "proven"),
    *_texts("key_id", "via"),
    *_optional(BigInteger, "stream_seq"),
    Column("arrival", BigInteger, nullable=False, server_default="0"),
    PrimaryKeyConstraint("machine", "id"),
    Index("closure_z", "machine", "mode", "ledger_id", "epoch", "z", unique=True),
    Index("closure_number", "machine", "mode", "z"),
    Index("closure_day", "mode", "day", "machine"),
    Index("closure_arrival", "mode", "arrival", "machine", "z", "id"),
)

# Month and year closures. body: the original message; digest: of its report.
calendar_closure = Table(
    "calendar_closure",
    metadata,
    *_texts("machine", "id", "nim", "mode", "kind"),
    *_numbers("number"),
    *_texts("period", "ledger_id"),
    *_numbers("epoch", "created_at", "received_at", "zs"),
    *_optional(BigInteger, "first_z", "last_z"),
    *_numbers("certs", "ttc", "ht", "tva", "grand_ttc"),
    *_of(LargeBinary, "digest", "body"),
    *_texts("key_id", "via"),
    PrimaryKeyConstraint("machine", "id"),
    Index("calendar_closure_number", "machine", "mode", "kind", "number"),
)

# The headers are JSON.
message = Table(
    "message",
    metadata,
    *_texts("machine", "id", "headers"),
    *_of(LargeBinary, "body"),
    PrimaryKeyConstraint("machine", "id"),
)

# at: by the box's clock. body: original JSON. boots: last starts of its daemon, in MessagePack (`core.lateness`).
presence = Table(
    "presence",
    metadata,
    _named("machine"),
    *_numbers("at", "received_at"),
    *_of(LargeBinary, "body"),
    *_optional(Text, "key_id"),
    *_optional(LargeBinary, "boots"),
    Index("presence_received", "received_at"),
)

# facts: JSON. solved_by: empty if automatic. told and claimed_until: from before the table `telling`.
finding = Table(
    "finding",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    *_texts("kind", "machine", "nim", "mode", "key", "facts"),
    *_numbers("found_at"),
    *_optional(BigInteger, "seen_at"),
    *_optional(Text, "seen_by"),
    *_optional(BigInteger, "solved_at"),
    *_optional(Text, "solved_by", "note"),
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

# State of a finding per notifier. told: 0 nothing sent, 1 sent as open, 2 sent as solved. claimed_until: end of a
# claim or delay. tries: failed attempts.
telling = Table(
    "telling",
    metadata,
    Column("finding", BigInteger, primary_key=True, autoincrement=False),
    _named("teller"),
    *_of(Integer, "told"),
    *_numbers("claimed_until"),
    *_of(Integer, "tries"),
    Index("telling_told", "teller", "told"),
)

refused = Table(
    "refused",
    metadata,
    *_texts("day", "via", "reason"),
    *_numbers("count"),
    PrimaryKeyConstraint("day", "via", "reason"),
)

# nim: as claimed; proven only for a fork. digest: makes repeated messages one row.
evidence = Table(
    "evidence",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    *_numbers("at"),
    *_texts("via", "reason", "nim", "detail", "headers"),
    *_of(LargeBinary, "body"),
    Column("digest", Text, nullable=False, unique=True),
    Index("evidence_reason", "reason", "id"),
)

position = Table("position", metadata, _named("stream"), *_numbers("seq"))

# ranges: numbers of the stream's messages stored in this database, inclusive, in MessagePack.
taken = Table("taken", metadata, _named("stream"), _named("created"), *_of(LargeBinary, "ranges"))

person = Table(
    "person",
    metadata,
    _named("name"),
    *_texts("password", "role"),
    *_of(Boolean, "disabled"),
    *_numbers("added_at"),
    *_optional(BigInteger, "changed_at"),
)

session = Table("session", metadata, _named("hash"), *_texts("name"), *_numbers("begun_at", "used_at"))

api_key = Table(
    "api_key",
    metadata,
    _named("hash"),
    *_texts("id", "role", "label"),
    *_numbers("added_at"),
    *_optional(BigInteger, "revoked_at"),
)


class NewerVersion(Exception):
    """The tables have a newer version than this program."""


def version_of(connection: Connection) -> str:
    """Empty for a new database."""
    if not inspect(connection).has_table(_VERSION):
        return ""
    return str(connection.scalar(text(f"SELECT version_num FROM {_VERSION}")))  # noqa: S608  a name of our own


def upgrade(connection: Connection, head: str = HEAD) -> None:
    version = version_of(connection)
    if version > HEAD:
        raise NewerVersion(version)
    if not version:
        metadata.create_all(connection, checkfirst=False)
        connection.exec_driver_sql(f"CREATE TABLE {_VERSION} (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
        connection.exec_driver_sql(f"INSERT INTO {_VERSION} VALUES ('{HEAD}')")  # noqa: S608  as above
        return
    kind = "BLOB" if connection.dialect.name == "sqlite" else "BYTEA"
    for step in (step for step in STEPS if version < step <= head):
        for statement in STEPS[step]:
            connection.exec_driver_sql(statement.format(bytes=kind))
        connection.exec_driver_sql(f"UPDATE {_VERSION} SET version_num = '{step}'")  # noqa: S608  as above
