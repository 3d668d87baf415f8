"""Which ledger this is, and how often it was put back."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from daemon.store.sqlite.migrations import migrate, migrations
from daemon.store.tables.meta import ClosureEpoch, Lineage, begin_epoch, identify, read_lineage


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection, migrations())
        yield connection


def test_a_ledger_has_one_id(connection: sqlite3.Connection) -> None:
    """Given once; whatever is put back keeps it."""
    begin_epoch(connection, 1_000)
    value = read_lineage(connection).ledger_id
    assert len(value) == 36
    identify(connection)
    begin_epoch(connection, 7_000)
    assert read_lineage(connection).ledger_id == value


def test_each_epoch_is_later_than_the_one_before(connection: sqlite3.Connection) -> None:
    """Named by the second in which it began; also after a second one in that second, and where the clock went back."""
    assert read_lineage(connection).epoch == 0
    for at, epoch in ((7_999, 7), (7_999, 8), (1_000, 9), (20_000, 20)):
        begin_epoch(connection, at)
        assert read_lineage(connection).epoch == epoch
    assert [each.number for each in read_lineage(connection).epochs] == [7, 8, 9, 20]


@pytest.mark.parametrize(("row", "epoch"), [(1, 0), (4, 0), (5, 7), (9, 7), (10, 8), (11, 8)])
def test_the_epoch_of_each_closure(row: int, epoch: int) -> None:
    """Those that were there when the ledger was put back are of the one before; the first of all has the number 0."""
    assert Lineage("id", (ClosureEpoch(4, 7), ClosureEpoch(9, 8))).epoch_of(row) == epoch
    assert Lineage("id", ()).epoch_of(row) == 0
