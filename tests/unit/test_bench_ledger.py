"""A ledger made in bulk is the one the daemon would have made, row by row."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from bench.shop import ledger
from bench.shop.ledger import Maker
from daemon.store.maintenance.verify import verify
from daemon.store.sqlite.file import open_file

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


def rows_of(path: Path, table: str, without: tuple[str, ...] = ()) -> list[dict[str, object]]:
    with closing(open_file(path, "rw")) as connection:
        connection.row_factory = sqlite3.Row
        found = [dict(row) for row in connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3")]  # noqa: S608
    return [{name: value for name, value in row.items() if name not in without} for row in found]


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
