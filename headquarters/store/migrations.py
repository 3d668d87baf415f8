"""From any version of the tables to those of now, in the transaction of the caller. A released step never changes."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, inspect, text

from headquarters.store import tables

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
"""The table of the version; its name is of the time when Alembic made the steps."""


class NewerVersion(Exception):
    """The tables are of a version that is not known here."""


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
        tables.metadata.create_all(connection, checkfirst=False)
        connection.exec_driver_sql(f"CREATE TABLE {_VERSION} (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
        connection.exec_driver_sql(f"INSERT INTO {_VERSION} VALUES ('{HEAD}')")  # noqa: S608  as above
        return
    kind = "BLOB" if connection.dialect.name == "sqlite" else "BYTEA"
    for step in (step for step in STEPS if version < step <= head):
        for statement in STEPS[step]:
            connection.exec_driver_sql(statement.format(bytes=kind))
        connection.exec_driver_sql(f"UPDATE {_VERSION} SET version_num = '{step}'")  # noqa: S608  as above
