"""Activations of a machine as the ledger keeps them (decision 33)."""

from __future__ import annotations

from pathlib import Path

import msgspec
from support.ledgers.ledger import IFU, NIM, Till

from daemon.core.ledger.entries import Epoch
from daemon.core.machine.state import FiscalCounters
from daemon.store import Store
from daemon.store.maintenance.verify import verify
from daemon.store.tables.book import entries

SECOND, THIRD = "EL02000015-2", "EL02000015-3"


async def epochs_of(store: Store, till: Till) -> list[object]:
    return [placed.entry for placed in await store.ledger._read(lambda each: list(entries.entries(each, till.book)))]


async def test_an_activation_is_an_epoch_of_its_own_once(store: Store, till: Till, path: Path) -> None:
    """Counters that go on explain themselves; those that began again are taken over, and whatever they count is nobody's of ours; one that the
    book knows already is nothing new."""
    known, anew = FiscalCounters(2, 2, 0), FiscalCounters(7, 3, 1)
    for _ in range(2):
        await till.sell()
    for _ in range(2):
        till.book = await store.ledger.begin_epoch(till.book, till.state(), SECOND, at=till.at)
        assert till.book.nim == SECOND
        assert await epochs_of(store, till) == [Epoch(2, NIM, SECOND, IFU, known, known)]
    assert (await store.ledger.state(till.book)).unexplained == 0
    for _ in range(2):
        state = msgspec.structs.replace(till.state(), counters=FiscalCounters(1, 3, 1))
        till.book = await store.ledger.begin_epoch(till.book, state, THIRD, at=till.at)
        told = await epochs_of(store, till)
        assert told[1:] == [Epoch(3, SECOND, THIRD, IFU, known, FiscalCounters(1, 3, 1))]
    found = await store.ledger.state(till.book)
    assert (found.epoch, found.known, found.unexplained) == (3, FiscalCounters(1, 3, 1), 4)
    till.counters = anew
    await till.sell()
    assert verify(path).clean


async def test_a_book_that_holds_nothing_was_only_misnamed(store: Store, till: Till) -> None:
    """It takes the machine's name, and begins with the first epoch."""
    till.book = await store.ledger.begin_epoch(till.book, till.state(), SECOND, at=till.at)
    assert (till.book.nim, await epochs_of(store, till)) == (SECOND, [])
    assert (await store.ledger.state(till.book)).epoch == 1


async def test_the_book_of_the_present_taxpayer_is_the_one_that_is_opened(store: Store, till: Till) -> None:
    """However often the machine goes from one to the other."""
    await store.ledger.reconcile(till.book, till.state(), unexplained=0, at=till.at)
    first = till.book
    second = await store.ledger.book_of_taxpayer(first, NIM, "00099999Z")
    assert second.id != first.id
    for ifu, book in ((IFU, first), ("00099999Z", second), (IFU, first)):
        taken = await store.ledger.book_of_taxpayer(first, NIM, ifu)
        assert taken.id == book.id
        assert (await store.ledger.open_book(NIM, "live")).id == book.id
