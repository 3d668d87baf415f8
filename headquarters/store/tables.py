"""The tables as they are now: a new database gets them as they stand here, an older one by the steps of `migrations.py` (a test compares).

Times are milliseconds since 1970, amounts whole XOF; columns are NOT NULL unless they are optional or written out."""

from __future__ import annotations

from typing import Any

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
from sqlalchemy.types import TypeEngine

metadata = MetaData()


def _of(kind: type[TypeEngine[Any]], *names: str) -> list[Column[Any]]:
    return [Column(name, kind, nullable=False) for name in names]


def _texts(*names: str) -> list[Column[Any]]:
    return _of(Text, *names)


def _numbers(*names: str) -> list[Column[Any]]:
    return _of(BigInteger, *names)


def _optional(kind: type[TypeEngine[Any]], *names: str) -> list[Column[Any]]:
    return [Column(name, kind) for name in names]


def _named(name: str) -> Column[str]:
    return Column(name, Text, primary_key=True)


meta = Table("meta", metadata, _named("name"), *_texts("value"))

# closes_at: minute of the day, set by a person; None: learnt. usual_at, learnt: minutes after 04:00. usual_days, learnt: bit 0 is Monday.
# changed_at, as of a person: when a person changed the row last; None: before that was kept. retired_at: since when its shop is closed for good.
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

# line: whpk_… or whsec_…, as `common.wire.keys.verifying_key` reads it. stolen_since: closures that headquarters got under the key from then on (by
# its own clock) were withdrawn; None: it was never in the wrong hands. restored: the revocation that was taken back last.
box_key = Table(
    "box_key",
    metadata,
    *_texts("machine", "key_id", "line"),
    *_numbers("added_at"),
    *_optional(BigInteger, "revoked_at", "stolen_since", "restored"),
    PrimaryKeyConstraint("machine", "key_id"),
)

# hash: SHA-256 of a code by which one box may join. nims: JSON. used_by: the public key (whpk_…) of the box that has joined by it.
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

# held: closures of it in the table, fewer than max_z when some are missing. told_z: the box says it has closed that one; told_by: the key that has
# said it last; None: said before that was kept, as key_id of a presence. last: the ClosureRecord of max_z, made at closed_at. ledger: the accepted ledger
# that it follows; None: the one it began with. asked, in MessagePack: what the box was asked for, each with its times (`core.asking`).
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

# The newest of a machine counts.
ledger = Table(
    "ledger",
    metadata,
    *_texts("machine", "ledger_id"),
    *_numbers("accepted_at"),
    *_texts("accepted_by"),
    PrimaryKeyConstraint("machine", "ledger_id"),
)

# In MessagePack: groups [[group, ht, tva, ttc], …], payments [[label, amount], …], held `core.closure_record.ClosureRecord`. The key is not the id alone: nobody
# takes another shop's id first. arrival: the number of the transaction that kept it; 0: before there were numbers.
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

# Of months and years. body: the message as it came; digest: of the report in it.
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

# at: by the box's clock. body: JSON as it came. boots, in MessagePack: the last starts of its daemon that were heard (`core.lateness`).
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

# facts: JSON. solved_by: empty for by itself. told and claimed_until: of before there was `telling`.
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

# How far each teller is with a finding. told: 0 nobody yet, 1 that it is there, 2 that it is solved. claimed_until: when it is tried again, or by
# another instance. tries: that failed.
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

# nim: as it says; only of a fork it is proven. digest: the same message again is the same evidence.
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

# ranges, in MessagePack: the numbers of a stream's messages that this database has, both ends included.
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
