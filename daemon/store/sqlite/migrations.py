"""The schema, as numbered files in `schema/`; `PRAGMA user_version` is the number of the last one applied."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from common.language import Text
from daemon.core.errors import LedgerUnusable
from daemon.core.invoice.number import number_key
from daemon.store.sqlite.disk_failure import as_storage_error
from daemon.store.sqlite.file import transaction

_SCHEMA = Path(__file__).parents[1] / "schema"
APPLICATION_ID = int.from_bytes(b"mcfd", "big")


class Migration(NamedTuple):
    number: int
    name: str
    script: str


def migrations() -> list[Migration]:
    """All of them, in order; the numbers run from 1 without a gap."""
    found = [_read(file) for file in sorted(_SCHEMA.iterdir()) if file.suffix == ".sql"]
    if [migration.number for migration in found] != list(range(1, len(found) + 1)):
        raise LedgerUnusable(Text("the installation is damaged: its migrations are not numbered without a gap"))
    return found


def migrate(connection: sqlite3.Connection, steps: list[Migration]) -> None:
    """Brings an empty or older file up to the last of `steps`, each one whole or not at all.

    LedgerUnusable for a file of another program, or one that a newer mcfd has migrated."""
    version = _version(connection, steps[-1].number)
    (enforced,) = connection.execute("PRAGMA foreign_keys").fetchone()
    connection.execute("PRAGMA foreign_keys = OFF")  # a table that is made anew is another parent for a moment
    try:
        _apply(connection, steps[version:])
    finally:
        connection.execute(f"PRAGMA foreign_keys = {enforced}")


def _apply(connection: sqlite3.Connection, steps: list[Migration]) -> None:
    connection.create_function("number_key", 1, number_key, deterministic=True)  # 0008
    for step in steps:
        with transaction(connection):
            for statement in statements(step.script):
                connection.execute(statement)
            _no_orphans(connection)
            connection.execute(f"PRAGMA user_version = {step.number}")


def _no_orphans(connection: sqlite3.Connection) -> None:
    orphan = connection.execute("PRAGMA foreign_key_check").fetchone()
    if orphan is not None:
        raise LedgerUnusable(
            Text(
                "a row of {table} refers to a missing {parent}; put the last backup back",
                table=orphan[0],
                parent=orphan[2],
            )
        )


def is_current(connection: sqlite3.Connection, steps: list[Migration]) -> bool:
    return _version(connection, steps[-1].number) == steps[-1].number


def is_ledger(connection: sqlite3.Connection) -> bool:
    """Whether mcfd has made the file, whatever its version; not of an empty one."""
    return bool(connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID)


def _version(connection: sqlite3.Connection, newest: int) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    try:
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except UnicodeDecodeError as error:
        raise as_storage_error(error) from error
    if application_id != APPLICATION_ID and (application_id or version or tables):
        raise LedgerUnusable(Text("this is a database of another program, not a ledger of mcfd"))
    if version > newest:
        raise LedgerUnusable(
            Text(
                "the ledger was written by a newer mcfd (its schema is {version}, this mcfd knows {newest}): install that version again, or put back a backup made before the upgrade",
                version=version,
                newest=newest,
            )
        )
    return version


def statements(script: str) -> Iterator[str]:
    """One at a time, since `executescript` would commit first and leave half a migration behind."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
    if any(line.strip() and not line.lstrip().startswith("--") for line in pending.splitlines()):
        raise ValueError("a migration ends in the middle of a statement")


def _read(file: Path) -> Migration:
    number, _, name = file.stem.partition("_")
    return Migration(int(number), name, file.read_text("utf-8"))
