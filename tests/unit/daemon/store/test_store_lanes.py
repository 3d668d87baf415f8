"""Events on their way to webhooks, what each row refers to, and the Z that a record is in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.ledger import START, Till, invoice, opened, query

from daemon.store import Store

HOOK = "https://till.example/events"
LANES = {"upstream": frozenset({"closure.created"}), HOOK: frozenset({"cert.issued", "mcf.attention", "mcf.connected"})}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite3"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[Store]:
    async with opened(path, lanes=LANES, live_only=(HOOK,)) as store:
        yield store


async def test_a_notice_refers_to_what_lasts(store: Store) -> None:
    """A certification to its attempt; what has no record, to the event itself, which holds the detail."""
    till = await Till.of(store)
    record = await till.sell()
    await store.set_attention(till.book, "another machine", at=till.at)
    await till.close()
    sale, attention = await store.outbox_for(HOOK).waiting_events(till.book, 10)
    assert (sale.type, sale.ref_id) == ("cert.issued", record.id)
    event = await store.find_event(till.book, attention.ref_id)
    assert event is not None
    assert (event.type, event.detail) == ("mcf.attention", "another machine")


async def test_an_event_of_another_book_is_not_found(store: Store) -> None:
    """Nor one that is not there."""
    till = await Till.of(store)
    await till.sell()
    sandbox = await Till.of(store, mode="test")
    newest = await store.newest_event()
    assert await store.find_event(till.book, newest) is not None
    assert await store.find_event(sandbox.book, newest) is None
    assert await store.find_event(till.book, newest + 1) is None


async def test_live_only_means_no_sandbox(store: Store, path: Path) -> None:
    """Its events are there for screens, and for destinations that want them; not for this one."""
    sandbox = await Till.of(store, mode="test")
    await sandbox.sell()
    await sandbox.close()
    assert await store.outbox_for(HOOK).waiting_events(sandbox.book, 10) == []
    assert query(path, "SELECT destination FROM outbox") == [("upstream",)]
    assert len(await store.events_after(sandbox.book, 0)) == 2


async def test_what_waits_for_nobody_is_forgotten(store: Store, path: Path) -> None:
    """A webhook taken out of the configuration leaves no rows behind; closures always stay."""
    till = await Till.of(store)
    await till.sell()
    await till.close()
    assert await store.forget_destinations(but=[HOOK]) == 0
    assert await store.forget_destinations(but=[]) == 1
    assert query(path, "SELECT destination FROM outbox") == [("upstream",)]


async def test_when_something_was_last_told(store: Store) -> None:
    """By type and book; 0 for never."""
    till, other = await Till.of(store), await Till.of(store, mode="test")
    assert await store.last_told(till.book, "taxserver.alert") == 0
    await store.add_event(till.book, "taxserver.alert", at=START, detail="8")
    await store.add_event(till.book, "mcf.connected", at=START + 5)
    assert await store.last_told(till.book, "taxserver.alert") == START
    assert await store.last_told(other.book, "taxserver.alert") == 0


async def test_when_the_ledger_was_found_sound(path: Path) -> None:
    """Kept in the ledger itself, over restarts."""
    async with opened(path) as store:
        assert await store.verified_at() == 0
        await store.note_verified(at=START)
        await store.note_verified(at=START + 1)
    async with opened(path) as store:
        assert await store.verified_at() == START + 1


async def test_the_z_of_each_record(store: Store) -> None:
    """As `period_of` gives it one by one: before, between and after closures, empty ones among them, all at one moment."""
    till = await Till.of(store)
    records = []
    for sales in (3, 0, 0, 2, 1, 0):
        records.extend([await till.sell() for _ in range(sales)])
        till.at = START  # the box's clock does not move: everything has one time
        await till.close()
    records += [await till.sell(), await till.fail(invoice("R-1"))]
    expected = [await store.period_of(till.book, record) for record in records]
    assert expected == [1, 1, 1, 4, 4, 5, 0, 0]
    assert await store.periods(till.book, records) == expected
    assert await store.periods(till.book, records[::-1]) == expected[::-1]
    assert await store.periods(till.book, records[3:5]) == [4, 4]
    begun = await store.record(till.book, await till.begin(invoice("B-1")))
    assert await store.periods(till.book, [begun]) == [0]
    assert await store.periods(till.book, []) == []
