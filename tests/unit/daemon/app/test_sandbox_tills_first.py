"""Tills go before the sandbox, which is open before anybody comes."""

import asyncio
from dataclasses import dataclass, field
from typing import cast

import pytest

from daemon.app import sandbox
from daemon.app.sandbox import let_tills_pass, sandbox_answers
from daemon.core.ledger.attempt import Mode
from daemon.core.ledger.book import Book
from daemon.usecases.worker.machine_worker import MachineWorker

NIM = "EL02000015-1"


@dataclass
class Worker:
    """As much of a machine's worker as is asked here."""

    mode: Mode
    waiting: int = 0
    connected: bool = False
    offline_since: int | None = None
    book: Book = field(init=False)

    def __post_init__(self) -> None:
        self.book = Book(1, NIM, self.mode)


def passing(*workers: Worker) -> asyncio.Future[None]:
    return asyncio.ensure_future(let_tills_pass(cast("list[MachineWorker]", list(workers))))


async def test_nobody_waits_for_the_sandboxes_own_tills() -> None:
    """Only who waits for a real machine goes first."""
    await asyncio.wait_for(passing(Worker("test", waiting=9), Worker("live")), 60)


async def test_it_goes_on_when_the_till_has_its_answer() -> None:
    """A till that waits at any machine counts."""
    till = Worker("live", waiting=1)
    request = passing(Worker("live"), till)
    await asyncio.sleep(0)
    assert not request.done()
    till.waiting = 0
    await asyncio.wait_for(request, 60)


@pytest.mark.parametrize("change", [{"connected": True}, {"offline_since": 1}], ids=["answers", "not opened"])
async def test_the_port_opens_after_the_sandbox(change: dict[str, object]) -> None:
    """The start waits until every machine of the sandbox answers or could not be opened, and for no real one, which may be away for days."""
    slow = Worker("test")
    workers = cast("list[MachineWorker]", [Worker("live"), Worker("test", connected=True), slow])
    start = asyncio.ensure_future(sandbox_answers(workers))
    await asyncio.sleep(0)
    assert not start.done()
    for name, value in change.items():
        setattr(slow, name, value)
    await asyncio.wait_for(start, 60)


async def test_a_sandbox_that_hangs_keeps_no_shop_shut(monkeypatch: pytest.MonkeyPatch) -> None:
    """The start goes on without it."""
    monkeypatch.setattr(sandbox, "AWAITED", 0.02)
    await asyncio.wait_for(sandbox_answers(cast("list[MachineWorker]", [Worker("test")])), 60)
