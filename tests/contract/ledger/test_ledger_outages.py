"""The register of outages in the ledger: entries of the book's chain, one outage open at the most, ended by what is certified."""

from pathlib import Path

import msgspec
import pytest
from support.ledgers.ledger import MINUTE, START, Till, invoice, opened, opened_till, query, tamper

from daemon.core.audit import Actor, Call
from daemon.core.clock import DAY, HOUR
from daemon.core.errors import NotFound
from daemon.core.invoice.number import TakenFrom
from daemon.core.ledger.deferred import DeferredSale
from daemon.core.ledger.entries import OutageBegun, Placed, entry_bytes
from daemon.core.ledger.outage import Notice, Outage, read_outage
from daemon.store.maintenance.backup import backup, restore
from daemon.store.maintenance.verify import verify
from daemon.store.store import Store
from daemon.store.tables.audit import newest_entries
from daemon.store.tables.book import deferred, outages
from daemon.store.tables.book.entries import repair_time
from daemon.store.tables.book.outages import newest_outages, outages_between


async def begin(till: Till, *, lasted: int = 5 * MINUTE, reason: str = "line_lost") -> Outage | None:
    return await till.store.ledger.begin_outage(
        till.book, reason, at=till.at, lasted=lasted, refused=False, incident="20251206T100000Z", is_over=False
    )


async def end(till: Till, *, ago: int = 0) -> Outage | None:
    return await till.store.ledger.end_outage(till.book, at=till.at, until=till.at - ago)


async def notify(
    till: Till, number: int, who: str = "administration", reference: str = "A-1", on: int | None = None
) -> bytes:
    return await till.store.ledger.write(
        outages.note_notified,
        till.book,
        number,
        Notice(who, reference, till.at if on is None else on),
        at=till.at,
        call=Call(by=Actor("user:awa")),
        answer=lambda outage: str(len(outage.notices)).encode(),
    )


def lasting(till: Till) -> Outage | None:
    return till.store.ledger.peek(outages.open_outage, till.book)


async def listed(till: Till, start: int = 0, end: int = 1 << 60, *, after: int = 0, limit: int = 100) -> list[int]:
    found = await till.store.ledger.read(outages_between, till.book, start=start, end=end, after=after, limit=limit)
    return [outage.number for outage in found]


async def test_an_outage_from_its_beginning_to_its_end(till: Till, path: Path) -> None:
    """It began before it was written down and ended before that was; everything about it is in the chain, and in the list of events."""
    await till.sell()
    till.at += HOUR
    began = till.at - 5 * MINUTE
    await begin(till)
    assert lasting(till) == Outage(1, till.book.nim, "line_lost", began, 0, refused=False, incident="20251206T100000Z")
    assert till.store.ledger.peek(outages.out_since, till.book) == began
    till.at += HOUR
    ended = await end(till, ago=MINUTE)
    assert (ended.since, ended.until) == (began, till.at - MINUTE)
    assert (lasting(till), till.store.ledger.peek(outages.out_since, till.book)) == (None, 0)
    assert await end(till) is None
    assert query(path, "SELECT type, ref_id FROM event WHERE type LIKE 'machine.%'") == [
        ("machine.outage", 1),
        ("machine.back", 1),
    ]
    assert verify(path).problems == ()


async def test_an_outage_begins_when_it_did_whatever_was_written_before_it(till: Till) -> None:
    """A sale came to its end while the beginning was on its way to the disk."""
    began = till.at
    till.at += MINUTE
    await till.fail(invoice("F-1"))
    till.at = began
    begun = await begin(till, lasted=0)
    assert begun.since == began


async def test_a_book_has_one_outage_open_at_the_most(till: Till, path: Path) -> None:
    """A second beginning is none, and writes nothing; the next outage has the next number and does not begin before the end of the one before."""
    assert await begin(till) is not None
    till.at += MINUTE
    assert await begin(till, reason="attention") is None
    till.at += MINUTE
    await end(till)
    over = till.at
    till.at += 2
    second = await begin(till, lasted=HOUR)
    assert (second.number, second.since) == (2, over)
    assert query(path, "SELECT count(*) FROM event WHERE type = 'machine.outage'") == [(2,)]
    assert verify(path).problems == ()


async def test_what_certifies_is_not_out_of_order(store: Store, till: Till, path: Path) -> None:
    """The transaction of a certification ends an outage when the machine took the invoice up; the end of an attempt that was begun before the outage
    says nothing."""
    sale = invoice("in doubt")
    doubtful = await till.begin(sale)
    till.at += MINUTE
    await begin(till, lasted=0)
    till.at += HOUR
    await till.finish(doubtful, sale)
    assert lasting(till) is not None
    record = await till.sell()
    assert lasting(till) is None
    (only,) = await store.ledger.read(outages_between, till.book, start=0, end=1 << 60, after=0, limit=9)
    assert only.until == record.ended_at - record.line_ms
    assert query(path, "SELECT count(*) FROM event WHERE type = 'machine.back'") == [(1,)]
    await begin(till, lasted=0)
    till.at -= MINUTE  # so that the next sale begins in the same moment
    await till.sell()
    assert lasting(till) is None
    assert verify(path).problems == ()


async def test_an_outage_that_is_stored_late_has_ended_with_the_first_certification(till: Till, path: Path) -> None:
    """The disk took nothing before; an attempt that had begun before the outage does not end it."""
    sale = invoice("in doubt")
    doubtful = await till.begin(sale)
    till.at += MINUTE
    began = till.at
    till.at += MINUTE
    await till.finish(doubtful, sale)
    assert (await begin(till, lasted=till.at - began)).is_open
    till.at += MINUTE
    await end(till)
    began, till.at = till.at, till.at + MINUTE
    record = await till.sell()
    till.at += HOUR
    late = await begin(till, lasted=till.at - began)
    assert (late.since, late.until) == (began, record.ended_at - record.line_ms)
    assert lasting(till) is None
    assert query(path, "SELECT count(*) FROM event WHERE type = 'machine.back'") == [(2,)]
    assert verify(path).problems == ()


async def test_who_was_notified_is_noted_once(store: Store, till: Till, path: Path) -> None:
    """In the chain and in the audit log; the same reference again is no second notice, and there is none of an outage that is not there."""
    await begin(till)
    assert await notify(till, 1) == b"1"
    till.at += MINUTE
    assert await notify(till, 1) == b"1"
    assert await notify(till, 1, "distributor") == b"2"
    with pytest.raises(NotFound):
        await notify(till, 2)
    await end(till)
    (only,) = await store.ledger.read(outages_between, till.book, start=0, end=1 << 60, after=0, limit=9)
    assert only.notices == (
        Notice("administration", "A-1", till.at - MINUTE),
        Notice("distributor", "A-1", till.at),
    )
    entries = await store.ledger.read(newest_entries, 2)
    assert [(entry.action, entry.actor, entry.detail["who"]) for entry in entries] == [
        ("outage.notified", "user:awa", "distributor"),
        ("outage.notified", "user:awa", "administration"),
    ]
    assert verify(path).problems == ()


async def test_outages_are_listed_by_time(till: Till) -> None:
    """Those that lasted within a range, also one that began before it or lasts still; a page goes on after the last number."""
    for _ in range(4):
        till.at += HOUR
        await begin(till, lasted=0)
        till.at += HOUR
        await end(till)
    till.at += HOUR
    await begin(till, lasted=0)
    assert await listed(till) == [1, 2, 3, 4, 5]
    assert await listed(till, limit=2) == [1, 2]
    assert await listed(till, limit=2, after=2) == [3, 4]
    assert await listed(till, START + 3 * HOUR + 1, START + 5 * HOUR) == [2]
    assert await listed(till, START + 4 * HOUR, START + 5 * HOUR) == []
    assert await listed(till, START + 5 * HOUR + MINUTE, START + 5 * HOUR + 2 * MINUTE) == [3]
    assert await listed(till, till.at + DAY) == [5]
    for limit, numbers in ((2, [5, 4]), (9, [5, 4, 3, 2, 1])):  # the newest first
        found = await till.store.ledger.read(newest_outages, till.book, start=0, end=1 << 60, limit=limit)
        assert [outage.number for outage in found] == numbers
    till.at += HOUR
    await end(till)
    await begin(till, lasted=0)
    await end(till)
    assert await listed(till, till.at) == [6]  # without length, and then; 5 had ended


def waiting(number: str, total: int, outage: int) -> DeferredSale:
    sale = invoice(number, amounts=(("B", total),))
    return DeferredSale(0, number, b"", "r", number, "FV", total, START, number, outage=outage, invoice=sale)


async def test_what_was_sold_meanwhile_is_counted(store: Store, till: Till, path: Path) -> None:
    """Sales that are certified later and name the outage, whatever became of them, but not those that were taken back."""
    await begin(till)
    for number, total, outage in (("A", 500, 1), ("B", 70, 1), ("C", 9, 0)):
        await store.ledger.defer(till.book, waiting(number, total, outage), "line_lost", TakenFrom())
    found = lasting(till)
    assert (found.sales, found.sales_total) == (2, 570)
    sale = store.ledger.peek(deferred.next_waiting, till.book, ())
    assert sale == msgspec.structs.replace(waiting("A", 500, 1), id=1)
    await store.ledger.write(deferred.withdraw, till.book, sale, "he came back", at=till.at, by=Actor("user:awa"))
    found = lasting(till)
    assert (found.sales, found.sales_total) == (1, 70)
    assert verify(path).problems == ()


async def test_a_repair_of_the_time_holds_for_outages(store: Store, till: Till, path: Path) -> None:
    """An outage of a clock that was ahead, and who was notified of it, is as much earlier as the book; not a right time that a person gave."""
    await till.sell()
    till.at += 100 * DAY + HOUR
    await begin(till)
    till.at += HOUR
    await notify(till, 1)
    await notify(till, 1, "distributor", on=START)
    right = till.at - 100 * DAY + HOUR  # as far ahead as the clock of a person may be
    await notify(till, 1, "distributor", "A-2", on=right)
    await end(till)
    await store.decisions.write(repair_time, till.book, now=START + DAY, ahead=100 * DAY, reason="wrong month")
    (only,) = await store.ledger.read(outages_between, till.book, start=0, end=1 << 60, after=0, limit=9)
    assert only.until - only.since == HOUR + 5 * MINUTE
    assert only.until < START + DAY
    assert [notice.at for notice in only.notices] == [only.until, START, right]
    assert verify(path).problems == ()


async def test_a_repair_leaves_the_beginning_that_a_right_clock_has_written(
    store: Store, till: Till, path: Path
) -> None:
    """The box was off for some minutes, and its clock was ahead when it was on again: it was not off for as long as the clock was ahead."""
    await till.sell()
    off_since, on_at = till.at + MINUTE, till.at + 11 * MINUTE
    till.at = on_at + 100 * DAY
    await begin(till, lasted=till.at - off_since, reason="box_off")
    till.at += MINUTE
    await end(till)
    await store.decisions.write(repair_time, till.book, now=START + DAY, ahead=100 * DAY, reason="wrong month")
    (only,) = await store.ledger.read(outages_between, till.book, start=0, end=1 << 60, after=0, limit=9)
    assert (only.since, only.until) == (off_since, on_at + MINUTE)
    assert verify(path).problems == ()


@pytest.mark.parametrize(
    ("ahead", "lasted", "before"),
    [(DAY, DAY - HOUR, DAY - HOUR), (DAY, DAY - HOUR + 1, 0), (DAY, DAY + 1, 1), (HOUR, HOUR, HOUR), (0, DAY, DAY)],
)
def test_how_long_before_its_repaired_entry_an_outage_began(ahead: int, lasted: int, before: int) -> None:
    """What it has lasted has in it by how much the clock was ahead, as soon as that can be, to the hour."""
    begun = entry_bytes(OutageBegun(1, "EL01000001", "box_off", lasted))
    placed = Placed(1, 0, 0, START, begun, chained_at=ahead and START + ahead)
    assert read_outage([placed]).since == START - before


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (
            "UPDATE entry SET body = CAST(replace(CAST(body AS TEXT), 'line_lost', 'blocked') AS BLOB) WHERE id = 1",
            "chain",
        ),
        ("DELETE FROM entry WHERE id = 2", "begins an outage while another one lasts"),
        ("DELETE FROM entry WHERE id = 1", "ends an outage that does not last"),
        (
            "UPDATE entry SET body = CAST(replace(CAST(body AS TEXT), ':1', ':9') AS BLOB) WHERE id = 2",
            "ends an outage that does not last",
        ),
        ("UPDATE entry SET body = CAST(replace(CAST(body AS TEXT), ':2', ':3') AS BLOB) WHERE id = 3", "number"),
        (
            "UPDATE entry SET body = CAST(replace(CAST(body AS TEXT), ':2', ':3') AS BLOB) WHERE id = 4",
            "not in the register",
        ),
    ],
)
async def test_a_register_that_was_changed_is_found(till: Till, path: Path, change: str, found: str) -> None:
    """A reason that was changed, an end or a beginning that is gone, a number that is another one."""
    await begin(till)
    await end(till)
    await begin(till)
    await notify(till, 2)
    assert verify(path).clean
    tamper(path, change)
    assert any(found in problem for problem in verify(path).problems), verify(path).problems


async def test_a_copy_brings_back_the_register_and_no_sign_of_life(path: Path, tmp_path: Path) -> None:
    """An outage that was open in it is open again; when the box was alive last is of the ledger that is gone."""
    copy = tmp_path / "copy"
    async with opened_till(path) as (store, till):
        await begin(till)
        await store.ledger.write(outages.store_sign_of_life, till.book, till.at)
    backup(path, copy, at=START)
    async with opened(path) as store:
        till.store = store
        await end(till)
    restore(copy, path, at=START + HOUR)
    async with opened(path) as store:
        till.store = store
        assert lasting(till) is not None
        assert store.ledger.peek(outages.sign_of_life, till.book) == 0
    assert verify(path).problems == ()
