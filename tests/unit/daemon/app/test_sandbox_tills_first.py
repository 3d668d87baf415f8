"""Tills go before the sandbox: at its machine, at the ledger's one writer, and at the door; and it is open before anybody comes."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast
from zoneinfo import ZoneInfo

import pytest

from daemon.app import sandbox
from daemon.app.sandbox import REST, TillsFirst, sandbox_answers
from daemon.core.ledger.attempt import Mode
from daemon.core.ledger.book import Book
from daemon.store.store import Store
from daemon.store.tables.book.books import book_state, open_book
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


def first_of(*workers: Worker) -> TillsFirst:
    return TillsFirst(cast("list[MachineWorker]", list(workers)))


async def test_nobody_waits_for_the_sandboxes_own_tills() -> None:
    """Only who waits for a real machine goes first; without one a command comes at once and nothing is waited for."""
    first = first_of(Worker("test", waiting=9), Worker("live"))
    assert first.rest() == 0.0
    async with asyncio.timeout(60):
        await first.yield_to_tills()


async def test_it_goes_on_when_the_till_has_its_answer() -> None:
    """A till that waits at any machine counts; meanwhile each command of the sandbox's machine comes a little later."""
    till = Worker("live", waiting=1)
    first = first_of(Worker("live"), till)
    assert first.rest() == REST
    passing = asyncio.ensure_future(first.yield_to_tills())
    await asyncio.sleep(0)
    assert not passing.done()
    till.waiting = 0
    await asyncio.wait_for(passing, 60)


async def test_the_sandboxes_writes_let_tills_pass(tmp_path: Path) -> None:
    """Each of them is asked for anew, and is in the same ledger afterwards; reading waits for nobody."""
    passed: list[None] = []

    async def let_pass() -> None:
        passed.append(None)

    store = await Store.open(tmp_path / "ledger.sqlite3", timezone=ZoneInfo("Africa/Ouagadougou"))
    try:
        ledger = store.sandbox_ledger(let_pass)
        book = await ledger.write(open_book, NIM, "test")
        assert len(passed) == 1
        assert ledger.peek(book_state, book) == store.ledger.peek(book_state, book)
        assert len(passed) == 1
        await ledger.set_attention(book, "looked at", at=1)
        assert len(passed) == 2
        assert (store.ledger.peek(book_state, book)).attention == "looked at"
    finally:
        await store.close()


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
