"""What stands in a ledger's file, read beside everything else."""

import contextlib
import sqlite3
from collections import defaultdict
from pathlib import Path

from daemon.core.machine.state import short_nim
from daemon.store.tables.meta import read_meta


def restored_at(ledger: Path) -> str:
    """Empty for a ledger that was never put back, and for one that is not there or that a disk did not take."""
    if not ledger.exists():
        return ""  # SQLite would make an empty file
    with contextlib.closing(sqlite3.connect(ledger)) as connection, contextlib.suppress(sqlite3.OperationalError):
        return read_meta(connection, "restored_at")
    return ""


def stored_sales(ledger: Path, nim: str) -> dict[str, set[tuple[str, int]]]:
    """Number and total of each attempt that a ledger holds at the machine `nim`, by its state, or by the decision `adopted`."""
    query = """SELECT coalesce((SELECT decision FROM settlement WHERE attempt_id = certification.id AND decision = 'adopted'), state),
        number, total_ttc FROM certification JOIN book ON book.id = book_id WHERE book.nim GLOB ?"""
    found = defaultdict[str, set[tuple[str, int]]](set)
    with contextlib.closing(sqlite3.connect(ledger)) as connection:
        for state, *sale in connection.execute(query, (f"{short_nim(nim)}*",)):
            found[state].add(tuple(sale))
    return found


def calendar_reports(ledger: Path) -> list[tuple[str, str, int, str]]:
    """Machine and taxpayer, kind, number and report of each month and year that a ledger has closed; none in a file that has no table yet."""
    query = """SELECT substr(nim, 1, 10) || ' ' || book.ifu, json_extract(CAST(body AS TEXT), '$.kind'), json_extract(CAST(body AS TEXT), '$.number'), hex(entry.hash)
        FROM entry JOIN book ON book.id = book_id WHERE json_extract(CAST(body AS TEXT), '$.type') = 'calendar'"""
    with contextlib.closing(sqlite3.connect(ledger)) as connection:
        has_tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] > 0
        return list(connection.execute(query)) if has_tables else []
