"""Activations of a machine as the ledger keeps them (decision 33)."""

import sqlite3
from functools import partial
from pathlib import Path

import msgspec
import pytest
from support.ledgers.ledger import IFU, NIM, Till, invoice

from daemon.core.ledger.attempt import Outcome
from daemon.core.ledger.entries import Epoch
from daemon.core.machine.state import FiscalCounters
from daemon.store.maintenance.verify import verify
from daemon.store.store import Store
from daemon.store.tables.book import entries, epochs
from daemon.store.tables.book.books import all_books, book_state, lineage_of, new_book, open_book
from daemon.store.tables.keys import create_key

SECOND, THIRD = "EL02000015-2", "EL02000015-3"


async def epochs_of(store: Store, till: Till) -> list[object]:
    return [placed.entry for placed in await store.ledger.read(lambda each: list(entries.entries(each, till.book)))]


async def test_an_activation_is_an_epoch_of_its_own_once(store: Store, till: Till, path: Path) -> None:
    """Counters that go on explain themselves; those that began again are taken over, and what they count is no invoice of ours; one that the
    book knows already is nothing new."""
    counters, anew = FiscalCounters(2, 2, 0), FiscalCounters(7, 3, 1)
    for _ in range(2):
        await till.sell()
    for _ in range(2):
        till.book = await store.ledger.begin_epoch(till.book, till.state(), SECOND, at=till.at)
        assert till.book.nim == SECOND
        assert await epochs_of(store, till) == [Epoch(2, NIM, SECOND, IFU, counters, counters)]
    assert (store.ledger.peek(book_state, till.book)).unexplained == 0
    for _ in range(2):
        state = msgspec.structs.replace(till.state(), counters=FiscalCounters(1, 3, 1))
        till.book = await store.ledger.begin_epoch(till.book, state, THIRD, at=till.at)
        result = await epochs_of(store, till)
        assert result[1:] == [Epoch(3, SECOND, THIRD, IFU, counters, FiscalCounters(1, 3, 1))]
    found = store.ledger.peek(book_state, till.book)
    assert (found.epoch, found.counters, found.unexplained) == (3, FiscalCounters(1, 3, 1), 4)
    till.counters = anew
    await till.sell()
    assert verify(path).clean


@pytest.mark.parametrize(("ifu", "taxpayer"), [("", IFU), ("00099999Z", "00099999Z")])
async def test_the_taxpayer_of_an_epoch(store: Store, till: Till, ifu: str, taxpayer: str) -> None:
    """Is the machine's; the book's where it sends none."""
    await store.ledger.reconcile(till.book, till.state(), unexplained=0, at=till.at)
    till.book = await store.ledger.begin_epoch(
        till.book, msgspec.structs.replace(till.state(), ifu=ifu), SECOND, at=till.at
    )
    assert [entry.ifu for entry in await epochs_of(store, till) if isinstance(entry, Epoch)] == [taxpayer]


async def test_a_book_that_holds_nothing_was_only_misnamed(store: Store, till: Till) -> None:
    """It takes the machine's name, and begins with the first epoch."""
    till.book = await store.ledger.begin_epoch(till.book, till.state(), SECOND, at=till.at)
    assert (till.book.nim, await epochs_of(store, till)) == (SECOND, [])
    state = store.ledger.peek(book_state, till.book)
    assert (state.epoch, state.book.nim) == (1, SECOND)


async def test_the_book_of_the_present_taxpayer_is_the_one_that_is_opened(store: Store, till: Till) -> None:
    """However often the machine goes from one to the other; a key works for the taxpayer that the machine had when it was made."""
    await store.ledger.reconcile(till.book, till.state(), unexplained=0, at=till.at)
    first = till.book
    before = await store.ledger.write(create_key, NIM, "live", "till", at=1)
    present = second = await store.ledger.write(epochs.book_of_taxpayer, first, NIM, "00099999Z")
    since = await store.ledger.write(create_key, NIM, "live", "till", at=2)
    assert second.id != first.id
    for ifu, book in ((IFU, first), ("00099999Z", second), (IFU, first)):
        present = await store.ledger.write(epochs.book_of_taxpayer, present, NIM, ifu)
        assert present.id == book.id
        assert (await store.ledger.write(open_book, NIM, "live")).id == book.id
        works = [store.key_ring.find(key) is not None for key in (before, since)]
        assert works == [ifu == IFU, ifu != IFU]


@pytest.mark.parametrize(
    ("nim", "expected", "number", "unexplained"),
    [
        ("", FiscalCounters(6, 4, 1), 1, 0),  # it goes on
        (NIM, FiscalCounters(6, 4, 1), 1, 0),
        ("", FiscalCounters(1, 1, 0), 2, 0),  # it has begun again under its old name, with this very invoice
        ("", FiscalCounters(4, 3, 1), 2, 3),
        ("", FiscalCounters(1, 0, 1), 2, 1),  # it has not counted this sale
        (SECOND, FiscalCounters(6, 4, 1), 2, 0),  # another name, and it counts on
        (SECOND, FiscalCounters(5, 3, 1), 2, 3),  # another name, and it has counted up to the same by chance
    ],
)
async def test_an_outcome_that_tells_of_an_activation(
    store: Store, till: Till, *, nim: str, expected: FiscalCounters, number: int, unexplained: int
) -> None:
    """The sale is in the epoch that begins with it, and what that has counted beside it is no invoice of ours."""
    await store.ledger.reconcile(
        till.book, msgspec.structs.replace(till.state(), counters=FiscalCounters(5, 3, 1)), unexplained=0, at=till.at
    )
    sale = invoice("F-1")
    word = msgspec.structs.replace(till.word(sale), counters=expected, nim=nim)
    attempt_id = await till.begin(sale)
    record = await store.ledger.write(
        store.ledger.certify, till.book, attempt_id, Outcome(word, sale, sale.total_ttc, till.at)
    )
    state = store.ledger.peek(book_state, till.book)
    assert (record.nim, state.book.nim) == (nim or NIM, nim or NIM)
    assert (state.epoch, state.counters, state.unexplained) == (number, expected, unexplained)
    assert (await store.ledger.read(partial(epochs.present_epoch, book=till.book))).number == number


async def test_the_next_taxpayer_has_a_lineage_of_its_own(store: Store, till: Till) -> None:
    """The machine's sandbox follows it; the first taxpayer's book keeps that of the ledger's file, as does another machine's."""

    def lineages(connection: sqlite3.Connection) -> list[str]:
        return [lineage_of(connection, book.id).ledger_id for book in all_books(connection)]

    await store.ledger.write(new_book, NIM, "test")
    await store.ledger.write(new_book, "EL02000099-1", "live")
    (own,) = set(await store.ledger.read(lineages))
    await store.ledger.write(new_book, SECOND, "live")
    first, sandbox, other, second = await store.ledger.read(lineages)
    assert (first, other, sandbox) == (own, own, second)
    assert second != own
