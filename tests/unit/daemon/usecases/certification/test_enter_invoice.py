"""What is believed of the answer to 38h, and how long it is waited for before somebody is told."""

import asyncio
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from structlog.testing import capture_logs
from support.core_samples import record

from daemon.core.errors import MachineRefused
from daemon.core.ledger.book import Book
from daemon.core.machine.state import Certified, FiscalCounters
from daemon.usecases.certification import enter_invoice
from daemon.usecases.certification.enter_invoice import OutcomeUnknown, close, watching
from daemon.usecases.worker.machine_worker import MachineWorker

BEFORE = FiscalCounters(5, 3, 2)


@dataclass
class Answering:
    """A machine that answers 38h with those counters, or refuses."""

    counters: FiscalCounters | None

    async def certify(self, *_: object) -> Certified:
        if self.counters is None:
            raise MachineRefused("E:no")
        return Certified("CODE", "20261122120000", "00084440Y", self.counters, "")


@pytest.mark.parametrize(
    ("kind", "expected", "believed"),
    [
        ("FV", FiscalCounters(6, 4, 2), True),
        ("FV", FiscalCounters(7, 4, 3), True),
        ("FV", FiscalCounters(5, 4, 2), False),
        ("FV", FiscalCounters(4, 4, 2), False),
        ("FV", FiscalCounters(6, 3, 2), False),
        ("EV", FiscalCounters(6, 3, 2), True),
        ("EV", FiscalCounters(6, 2, 2), False),
        ("FV", None, False),
    ],
)
async def test_an_answer_to_38h_is_believed_where_its_counters_moved(
    kind: str, expected: FiscalCounters | None, believed: bool
) -> None:
    """TC always, and that of its type where it counts at all; of every other answer, and of a refusal, only the machine's next word tells."""
    invoice = msgspec.structs.replace(record().invoice, type=kind)
    machine: Any = Answering(expected)
    worker: Any = SimpleNamespace(counters=BEFORE, book=None, ledger=SimpleNamespace(peek=lambda *_: False))
    if believed:
        assert (await close(worker, machine, invoice)).counters == expected
    else:
        with pytest.raises(OutcomeUnknown):
            await close(worker, machine, invoice)


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
