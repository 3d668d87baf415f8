"""A ledger made in bulk is the one the daemon would have made, row by row."""

import sqlite3
from contextlib import closing
from datetime import UTC
from pathlib import Path

import pytest

from bench.shop import ledger
from bench.shop.ledger import DAY, Maker
from daemon.core.invoice.invoice import PAYMENT_LABELS
from daemon.core.ledger.attempt import Attempt, Outcome
from daemon.core.machine.state import Certified, FiscalCounters
from daemon.store.maintenance.verify import verify
from daemon.store.sqlite.connection import open_file
from daemon.store.sqlite.migrations import migrate, migrations
from daemon.store.tables.book import attempts, books, closures, totals

START = 1_735_689_600_000
"""2025-01-01 in ms."""
COUNT = 230
PER_DAY = 100


@pytest.fixture(autouse=True)
def short_days(monkeypatch):
    monkeypatch.setattr(ledger, "PER_DAY", PER_DAY)
    monkeypatch.setattr(ledger, "TEMPLATES", 20)


def ledger_file(path: Path) -> Path:
    maker = Maker(path, start=START)
    maker.add(COUNT)
    maker.pause()
    return path


def by_the_daemon(source: Path, target: Path) -> Path:
    """The same certifications once more, each by `begin` and `certify`, with a tick at each and a Z where the source has one."""
    with closing(open_file(source, "rw")) as rows, closing(open_file(target, "rwc")) as connection:
        migrate(connection, migrations())
        book = books.open_book(connection, ledger.NIM, "live")
        connection.execute("BEGIN")
        for id_ in range(1, COUNT + 1):
            record = attempts.find_record(rows, book, id_)
            assert record.counters is not None
            attempt = Attempt(record.invoice, record.base, record.begun_at, record.request_id)
            word = Certified(record.code, record.machine_time, record.ifu, record.counters, fc=record.fc)
            outcome = Outcome(
                word, record.invoice, record.total_ttc, record.ended_at, record.line_ms, record.duration_ms
            )
            attempts.certify(connection, book, attempts.begin(connection, book, attempt), outcome)
            totals.bring_in(connection, book, UTC)
            if id_ % PER_DAY == 0:
                closed_at = START + (id_ // PER_DAY - 1) * DAY + 21 * 3_600_000
                closures.close_period(
                    connection,
                    book,
                    counters=FiscalCounters(id_, id_, 0),
                    unexplained=0,
                    at=closed_at,
                    zone=UTC,
                    labels=PAYMENT_LABELS,
                )
        connection.execute("COMMIT")
    return target


def rows_of(path: Path, table: str, without: tuple[str, ...] = ()) -> list[dict[str, object]]:
    with closing(open_file(path, "rw")) as connection:
        connection.row_factory = sqlite3.Row
        found = [dict(row) for row in connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3")]  # noqa: S608
    return [{name: value for name, value in row.items() if name not in without} for row in found]


def test_bulk_and_daemon_leave_the_same_rows(tmp_path):
    """Certifications with hash, tally and payload, totals and checkpoints; of a closure everything but its random report_id,
    and so not the hashes after the first one."""
    bulk = ledger_file(tmp_path / "bulk.sqlite3")
    daily = by_the_daemon(bulk, tmp_path / "daily.sqlite3")
    first_day = [rows_of(path, "certification")[:PER_DAY] for path in (bulk, daily)]
    assert first_day[0] == first_day[1]
    chained = ("hash",)
    for table, without in (
        ("certification", chained),
        ("total", ()),
        ("checkpoint", ()),
        ("book", ("head",)),
        ("closure", ("report_id", "hash", "body")),
    ):
        assert rows_of(bulk, table, without) == rows_of(daily, table, without), table


def test_verify_finds_nothing_wrong(tmp_path):
    """The code of `mcfd verify`, over every hash, checkpoint and closure."""
    found = verify(ledger_file(tmp_path / "bulk.sqlite3"))
    assert found.problems == ()
    assert (found.records, found.closures) == (COUNT, COUNT // PER_DAY)


def test_a_ledger_made_in_parts_is_one_ledger(tmp_path):
    """Each part goes on where the one before it ended."""
    maker = Maker(tmp_path / "parts.sqlite3", start=START)
    for count in (30, 100, 100):
        maker.add(count)
    maker.pause()
    whole = ledger_file(tmp_path / "whole.sqlite3")
    for table in ("total", "checkpoint"):
        assert rows_of(tmp_path / "parts.sqlite3", table) == rows_of(whole, table)
    assert verify(tmp_path / "parts.sqlite3").clean
