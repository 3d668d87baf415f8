"""Opens the ledger's file for commands that only read, and loads its queries; `connection.py` is for the daemon."""

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

from common.files import is_on_read_only_disk
from common.language import Text
from common.language.system import reason
from daemon.core.errors import LedgerUnusable

T = TypeVar("T")
Mode: TypeAlias = Literal["ro", "rw", "rwc"]
"""As in an SQLite URI."""

OUTBOX = "daemon.store.tables.outbox"
"""Written by events, sent from by the outbox, tidied by housekeeping: the one table with more than one module."""
_CODE = Path(__file__).parents[3]
"""Where our packages lie."""
_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
STATEMENTS = 256
"""Prepared statements of each connection; the store has about a hundred."""

UNREADABLE = (sqlite3.Error, UnicodeDecodeError)
"""Errors of a damaged file; the second is of an error's text that quotes it."""
BUSY_SECONDS = 5.0
"""How long to wait for a lock of the file's."""


def check_is_file(path: Path) -> None:
    """LedgerUnusable for a folder, a pipe or a device, which SQLite would wait for, or take for a failing disk; and where
    this user may not look."""
    try:
        if path.exists() and not path.is_file():
            raise LedgerUnusable(Text("{path}: it is not a file", path=path))
    except PermissionError as error:
        raise LedgerUnusable(Text("{path} cannot be read: {why}", path=path, why=reason(error))) from error


def open_file(path: Path, mode: Mode) -> sqlite3.Connection:
    """LedgerUnusable as `check_is_file`."""
    check_is_file(path)
    still = "&immutable=1" if mode == "ro" and _is_still(path) else ""
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}{still}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,  # transactions are begun and ended by name
        cached_statements=STATEMENTS,
    )


def _is_still(path: Path) -> bool:
    """Whether nothing can write the file, and no write-ahead log belongs to it: SQLite cannot make there what it reads a
    ledger with."""
    try:
        return is_on_read_only_disk(path) and not path.with_name(f"{path.name}-wal").exists()
    except OSError:
        return False


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing; nobody else writes meanwhile."""
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        yield


def open_to_read(path: Path) -> sqlite3.Connection:
    """Opens the file beside its writer. A WAL left by a crash is read, and stays for the next writer."""
    connection = open_file(path, "ro")
    connection.execute("PRAGMA query_only = ON")
    return connection


# -- queries: SQL lives beside the module that runs it, in blocks that begin with `-- name: …` ---------------------------------------


def load(module: str, **parts: str) -> dict[str, str]:
    """The blocks of the `.sql` file beside `module` by name; `{part}` in them is replaced by what `parts` says."""
    text = Path(f"{_CODE}/{module.replace('.', '/')}.sql").read_text("utf-8")
    pieces = _NAME.split(text)
    blocks = dict(zip(pieces[1::2], (body.strip() for body in pieces[2::2]), strict=True))
    for part, columns in parts.items():
        blocks = {name: body.replace("{" + part + "}", columns) for name, body in blocks.items()}
    return blocks


def value_of(found: sqlite3.Cursor, default: Any = 0) -> Any:
    """The first value of the first row, `default` without a row."""
    return next((value for value, *_ in found), default)


def read_as(kind: Callable[..., T], found: sqlite3.Cursor) -> Iterator[T]:
    """Each row as `kind`, whose fields are named as the columns; so another column cannot shift a value."""
    names = [name for name, *_ in found.description]
    for row in found:
        yield kind(**dict(zip(names, row, strict=True)))
