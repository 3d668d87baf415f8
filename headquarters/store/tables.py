"""Current definition of the tables: a new database gets them as defined here, an older one by the `STEPS` (a test
compares both).

Times are milliseconds since 1970, amounts whole XOF; columns are NOT NULL unless they are optional or written out.

A step runs in the caller's transaction. Released steps never change."""

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
    Table,
    Text,
    inspect,
    text,
)
from sqlalchemy.schema import SchemaItem

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
    "0009": ("ALTER TABLE closure ADD COLUMN replaced_by BIGINT",),
    "0010": (),  # `replaced_by` of closures that were stored before
    "0011": (
        "ALTER TABLE book RENAME COLUMN held TO closure_count",
        "ALTER TABLE book RENAME COLUMN told_z TO last_z",
        "ALTER TABLE book RENAME COLUMN told_by TO last_z_key",
        "ALTER TABLE book RENAME COLUMN asked TO requests",
        "ALTER TABLE book RENAME COLUMN asked_at TO requested_at",
        "ALTER TABLE closure RENAME COLUMN held TO record",
        "ALTER TABLE join_code RENAME COLUMN made_at TO created_at",
        "ALTER TABLE join_code RENAME COLUMN made_by TO created_by",
        "DROP INDEX finding_told",
        "ALTER TABLE finding RENAME COLUMN told TO notification_state",
        "CREATE INDEX finding_notification_state ON finding (notification_state, found_at)",
        "DROP INDEX telling_told",
        "ALTER TABLE telling RENAME TO notification",
        "ALTER TABLE notification RENAME COLUMN teller TO notifier",
        "ALTER TABLE notification RENAME COLUMN told TO state",
        "CREATE INDEX notification_by_state ON notification (notifier, state)",
        "ALTER TABLE taken RENAME TO stream_ranges",
    ),
}
HEAD: Final = max(STEPS)
_VERSION: Final = "alembic_version"
"""Table of the version; named by Alembic, which ran the first steps."""


_KINDS = {"text": Text, "number": BigInteger, "small": Integer, "bytes": LargeBinary, "flag": Boolean}


def _table(name: str, key: str, *more: SchemaItem, **columns: str) -> Table:
    """`key` and `columns` are names, separated by spaces: of the primary key, which is text, and by kind. Kinds that end
    with `_or_none` are optional."""
    keys = [Column(each, Text, primary_key=True) for each in key.split()]
    others: list[Column[Any]] = [
        Column(each, _KINDS[kind.removesuffix("_or_none")], nullable=kind.endswith("_or_none"))
        for kind, names in columns.items()
        for each in names.split()
    ]
    return Table(name, metadata, *keys, *others, *more)


meta = _table("meta", "name", text="value")

# closes_at: minute of the day, set by a person; None: learnt. usual_at (learnt): minutes after 04:00. usual_days
# (learnt): bit 0 is Monday. changed_at: last change by a person; None: before this was stored. retired_at: since when
# the shop is closed for good.
box = _table(
    "box",
    "machine",
    Index("box_region", "region", "machine"),
    text="nim label region",
    small="usual_days",
    small_or_none="closes_at usual_at",
    number="added_at",
    number_or_none="changed_at retired_at",
)

# line: whpk_… or whsec_…, see `common.wire.keys.verifying_key`. stolen_since: closures received under the key since
# then (headquarters' clock) were withdrawn; None: never stolen. restored: time of the last revocation that was undone.
box_key = _table(
    *("box_key", "machine key_id"), text="line", number="added_at", number_or_none="revoked_at stolen_since restored"
)

# hash: SHA-256 of a join code for one box. nims: JSON. used_by: public key (whpk_…) of the joined box.
join_code = _table(
    "join_code",
    "hash",
    text="nims label region created_by",
    text_or_none="used_by",
    number="created_at ends_at",
    number_or_none="used_at",
)

# closure_count: stored closures of the book, fewer than max_z if some are missing. last_z: last Z stated by the box;
# last_z_key: key of this statement; None: before this was stored, like key_id of a presence. last: ClosureRecord of
# max_z, created at closed_at. ledger: accepted ledger; None: the first one. requests: requested ranges with their times,
# in MessagePack (`core.checks`).
book = _table(
    "book",
    "machine mode",
    number="max_z closure_count last_z closed_at received_at requested_at",
    text_or_none="ledger last_z_key",
    bytes_or_none="last requests",
)

# The newest of a machine is valid.
ledger = _table("ledger", "machine ledger_id", number="accepted_at", text="accepted_by")

# In MessagePack: groups [[group, ht, tva, ttc], …], payments [[label, amount], …], record `core.checks.ClosureRecord`.
# The key includes the machine, so that no shop can occupy another one's id. arrival: number of the storing
# transaction; 0: before this was numbered. replaced_by: Z of the closure of a restored ledger that has all its sales
# again (`core.checks.replaced`); it counts in no total.
closure = _table(
    "closure",
    "machine id",
    Column("arrival", BigInteger, nullable=False, server_default="0"),
    Index("closure_z", "machine", "mode", "ledger_id", "epoch", "z", unique=True),
    Index("closure_number", "machine", "mode", "z"),
    Index("closure_day", "mode", "day", "machine"),
    Index("closure_arrival", "mode", "arrival", "machine", "z", "id"),
    text="nim mode ledger_id day key_id via",
    text_or_none="previous_id",
    number="epoch z period_start period_end created_at received_at certs ttc ht tva",
    number_or_none="stream_seq replaced_by",
    bytes="groups payments record",
    flag_or_none="proven",
)

# Month and year closures. body: the original message; digest: of its report.
calendar_closure = _table(
    "calendar_closure",
    "machine id",
    Index("calendar_closure_number", "machine", "mode", "kind", "number"),
    text="nim mode kind period ledger_id key_id via",
    number="number epoch created_at received_at zs certs ttc ht tva grand_ttc",
    number_or_none="first_z last_z",
    bytes="digest body",
)

# The headers are JSON.
message = _table("message", "machine id", text="headers", bytes="body")

# at: by the box's clock. body: original JSON. boots: last starts of its daemon, in MessagePack (`core.lateness`).
presence = _table(
    "presence",
    "machine",
    Index("presence_received", "received_at"),
    number="at received_at",
    bytes="body",
    text_or_none="key_id",
    bytes_or_none="boots",
)

# facts: JSON. solved_by: empty if automatic. notification_state and claimed_until: from before the table
# `notification`.
finding = _table(
    "finding",
    "",
    Column("id", Integer, primary_key=True, autoincrement=True),
    Index(
        "finding_open",
        *("machine", "mode", "kind", "key"),
        unique=True,
        sqlite_where=text("solved_at IS NULL"),
        postgresql_where=text("solved_at IS NULL"),
    ),
    Index("finding_machine", "machine", "mode"),
    Index("finding_notification_state", "notification_state", "found_at"),
    text="kind machine nim mode key facts",
    text_or_none="seen_by solved_by note",
    number="found_at claimed_until",
    number_or_none="seen_at solved_at",
    small="notification_state",
)

# State of a finding per notifier. state: 0 nothing sent, 1 sent as open, 2 sent as solved. claimed_until: end of a
# claim or delay. tries: failed attempts.
notification = _table(
    "notification",
    "",
    Column("finding", BigInteger, primary_key=True, autoincrement=False),
    Column("notifier", Text, primary_key=True),
    Index("notification_by_state", "notifier", "state"),
    number="claimed_until",
    small="state tries",
)

refused = _table("refused", "day via reason", number="count")

# nim: as claimed; proven only for a fork. digest: makes repeated messages one row.
evidence = _table(
    "evidence",
    "",
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("digest", Text, nullable=False, unique=True),
    Index("evidence_reason", "reason", "id"),
    text="via reason nim detail headers",
    number="at",
    bytes="body",
)

position = _table("position", "stream", number="seq")

# ranges: numbers of the stream's messages stored in this database, inclusive, in MessagePack.
stream_ranges = _table("stream_ranges", "stream created", bytes="ranges")

person = _table(
    *("person", "name"), text="password role", flag="disabled", number="added_at", number_or_none="changed_at"
)

session = _table("session", "hash", text="name", number="begun_at used_at")

api_key = _table("api_key", "hash", text="id role label", number="added_at", number_or_none="revoked_at")


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
