"""How long a 38h is waited for before somebody is told."""

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest
from structlog.testing import capture_logs

from daemon.core.ledger.book import Book
from daemon.usecases.certification import enter_invoice
from daemon.usecases.certification.enter_invoice import watching
from daemon.usecases.worker.machine_worker import MachineWorker


class Watched:
    """A worker as far as it is asked here."""

    def __init__(self) -> None:
        self.published: list[str] = []
        self.odd: list[str] = []
        self.worker = cast(
            "MachineWorker",
            SimpleNamespace(
                names={},
                book=Book(1, "EL02000015-1", "live"),
                note_incident=lambda why: self.odd.append(why) or "incident",
                publish=lambda kind, detail: self.published.append(f"{kind}: {detail}"),
            ),
        )


async def test_the_watch_is_over_with_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A timer that is left would tell of an invoice that was certified long ago."""
    loop = asyncio.get_running_loop()
    timers: list[asyncio.TimerHandle] = []
    later = loop.call_later
    monkeypatch.setattr(loop, "call_later", lambda *call: timers.append(later(*call)) or timers[-1], raising=False)
    with watching(Watched().worker, "F-1", is_credit=False):
        pass
    assert [timer.cancelled() for timer in timers] == [True]


async def test_a_38h_that_takes_longer_is_announced_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """As an event, and as an incident of the recording."""
    monkeypatch.setattr(enter_invoice, "SLOW_AFTER", {False: 0.0})
    watched = Watched()
    with capture_logs() as logs, watching(watched.worker, "F-1", is_credit=False):
        await asyncio.sleep(0.01)
    assert [(each["event"], each["incident"]) for each in logs] == [("certification.slow", "incident")]
    assert ([text.partition(":")[0] for text in watched.published], len(watched.odd)) == (["mcf.slow"], 1)
