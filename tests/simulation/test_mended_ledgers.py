"""Histories in which each restore has to do with a damaged ledger: with the rows of the copy it is mended, and nothing is forgiven for it."""

import contextlib
import itertools
import sqlite3
from pathlib import Path

import pytest
from simulation.drawn.script import drawn
from simulation.drawn.troubles import Troubles
from simulation.history import played

from daemon.store.maintenance.backup import restore

HISTORIES = 12
LAST_OF_COPY = """SELECT max(certification.id) FROM certification JOIN book ON book.id = book_id
WHERE mode = 'live' AND seq IS NOT NULL"""


def damage(ledger: Path, saved: Path) -> None:
    """Of the newest live record that both have; nothing in a copy without one."""
    with contextlib.closing(sqlite3.connect(saved)) as copy, contextlib.closing(sqlite3.connect(ledger)) as present:
        row = copy.execute(LAST_OF_COPY).fetchone()
        with present:
            present.execute("UPDATE certification SET payload = x'00' WHERE id = ?", row)


def restores(seed: int) -> bool:
    kinds = {event.what for event in drawn(seed).events}
    return "restore" in kinds and not kinds & {"restore_twice", "new_disk"}


@pytest.mark.parametrize(
    "first", [pytest.param(first, marks=[pytest.mark.long] * (first > 0)) for first in (0, 1000, 2000, 3000)]
)
def test_a_mended_ledger_is_the_one_that_was_damaged(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tills have each sale once, by its key and without, Z goes on, doubts are settled, and no person is asked who would not have been."""
    mended = 0

    def put_back(self: Troubles, saved: Path, sync: int, **_: object) -> bool:
        nonlocal mended
        damage(self.box.ledger, saved)
        done = restore(saved, self.box.ledger, at=self.box.millis() + len(self._asides()), keep_newer=True)
        assert not done.why_not
        assert done.findings.clean
        mended += not done.is_unchanged
        return False

    monkeypatch.setattr(Troubles, "_put_back", put_back)
    for seed in itertools.islice(filter(restores, itertools.count(first)), HISTORIES):
        outcome = played(seed)
        assert not outcome.failure, (seed, outcome.failure)
    assert mended
