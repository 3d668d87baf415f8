"""A search of the journal goes back piece by piece, and what it finds does not depend on the pieces."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from support.ledgers.ledger import NIM, Till, invoice, opened

from daemon.core.invoice.intake import Defaults
from daemon.core.report.journal import Page
from daemon.usecases.reports import search as searching
from daemon.usecases.reports.journal import make_way
from daemon.usecases.reports.search import Search, search
from daemon.usecases.worker.book_clock import BoxClock
from daemon.usecases.worker.machine_worker import MachineWorker

EVER = Page(0, 1 << 53, limit=2)
AMOUNT = 777


async def everything(worker: MachineWorker, asked: Search) -> tuple[list[str], int]:
    """The numbers of all pages, and how many answers that took; each goes on where the one before ended."""
    numbers: list[str] = []
    answers = 0
    while True:
        found = await search(worker, asked)
        numbers += [record.number for record, _ in found.records]
        answers += 1
        if not found.next:
            assert found.complete
            return numbers, answers
        asked = msgspec.structs.replace(asked, page=msgspec.structs.replace(asked.page, before_seq=found.next))


@pytest.mark.parametrize("stretch", [1, 3, 7, 1000])
async def test_amounts_and_customers_are_found_in_any_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stretch: int
) -> None:
    """Every entry of that amount, and of that customer, newest first, each once; no answer goes through more than its share of the entries."""
    monkeypatch.setattr(searching, "STRETCH", stretch)
    monkeypatch.setattr(searching, "SIFTED", 2 * stretch)
    monkeypatch.setattr(searching, "SLICE", stretch)
    monkeypatch.setattr(searching, "BUDGET", 2 * stretch)
    async with opened(tmp_path / "ledger.sqlite3") as store:
        till = await Till.of(store)
        wanted = []
        for at in range(24):
            sale = invoice(f"N-{at:02d}", amounts=(("B", AMOUNT if at % 5 == 0 else 1000 + at),))
            name = "Wend Panga" if at % 5 == 0 else "Sahel"
            sale = msgspec.structs.replace(sale, customer=msgspec.structs.replace(sale.customer, name=name))
            await till.certify(sale)
            wanted += [sale.number] if at % 5 == 0 else []
        worker = MachineWorker(
            till.book,
            store.ledger,
            store.journal,
            store.events,
            BoxClock(lambda: 0),
            Defaults("1", "Caisse 1", "1", NIM),
        )
        by_amount, answers = await everything(worker, Search(EVER, amount=AMOUNT))
        by_customer, _ = await everything(worker, Search(EVER, text="wend"))
        none, _ = await everything(worker, Search(EVER, amount=1))
    assert by_amount == wanted[::-1]
    assert sorted(by_customer) == sorted(wanted)
    assert by_customer == sorted(by_customer, reverse=True)
    assert none == []
    assert answers >= max(len(wanted) // EVER.limit, 24 // (2 * stretch))


async def test_a_long_reading_makes_way() -> None:
    """Between two slices the loop has a turn for whatever else is ready, also when no invoice waits."""
    ran: list[str] = []
    asyncio.get_running_loop().call_soon(ran.append, "another")
    await make_way(SimpleNamespace(waiting=0))  # type: ignore[arg-type]  # that is all it asks of a worker
    assert ran == ["another"]
