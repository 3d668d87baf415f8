"""What the use cases rely on, over a real file."""

import asyncio
import sqlite3
from pathlib import Path

import msgspec
import pytest
from support.ledgers.ledger import IFU, NIM, RATES, START, Till, code_of, invoice, opened, opened_till

from daemon.core.audit import Actor, Call
from daemon.core.errors import MachineBusy, NotFound, StorageFull
from daemon.core.ledger.attempt import Attempt, DuplicateInvoice, Mode, Outcome
from daemon.core.ledger.book import Book
from daemon.core.ledger.tally import contribution
from daemon.core.machine.state import FiscalCounters
from daemon.store.store import Store
from daemon.store.tables import audit
from daemon.store.tables.audit import newest_entries
from daemon.store.tables.book import attempts
from daemon.store.tables.book.books import accept_time, book_state
from daemon.store.tables.book.closures import closures_between, find_closure, find_closure_by_id, periods_of
from daemon.store.tables.events import event_span, events_after

KEY, BODY = b"k" * 16, b"f" * 16


async def test_an_intent_is_durable_before_it_returns(path: Path) -> None:
    """What `begin` returned for is in the file for another reader, begun and without a place in the order."""
    async with opened(path) as store, opened(path, opening="read") as other:
        till = await Till.of(store)
        attempt_id = await till.begin(invoice(), KEY, BODY)
        record = other.ledger.peek(attempts.find_record, till.book, attempt_id)
        assert (record.state, record.seq, record.number, record.total_ttc) == ("begun", 0, "F-1", 15000)
        assert record.invoice == invoice()
        assert record.base == FiscalCounters(0, 0, 0)
        assert (record.ended_at, record.line_ms, record.duration_ms, record.chained_at) == (0, 0, 0, 0)
        assert (record.code, record.machine_time, record.ifu, record.reason, record.hash) == ("", "", "", "", b"")
        assert [r.id for r in other.ledger.peek(attempts.unfinished, till.book)] == [attempt_id]
        assert (store.ledger.peek(book_state, till.book)).last_at == record.begun_at


async def test_the_outcome_keeps_the_machines_word(store: Store, till: Till) -> None:
    """Code, time, IFU and counters are in the record and the counters are the book's from then on."""
    record = await till.certify(invoice())
    assert record == store.ledger.peek(attempts.find_record, till.book, record.id)
    assert (record.state, record.seq, record.code, record.ifu) == ("certified", 1, code_of("F-1"), IFU)
    assert record.counters == FiscalCounters(1, 1, 0)
    assert (record.request_id, len(record.hash)) == ("request-F-1", 32)
    state = store.ledger.peek(book_state, till.book)
    assert (state.counters, state.last_number, state.last_seq) == (FiscalCounters(1, 1, 0), "F-1", 1)
    assert store.ledger.peek(attempts.unfinished, till.book) == []


async def test_what_is_certified_may_differ_from_the_intent(store: Store, till: Till) -> None:
    """In HT mode the machine's total counts (decision 24): the record holds the invoice as it was certified."""
    agreed = invoice(amounts=(("B", 14999),))
    record = await till.finish(await till.begin(invoice()), agreed)
    stored = store.ledger.peek(attempts.find_record, till.book, record.id)
    assert (stored.total_ttc, stored.invoice) == (14999, agreed)


async def test_an_intent_can_be_amended_until_it_ends(store: Store, till: Till) -> None:
    """What the machine agreed to is in the ledger before it is certified, so that its total can be recognised."""
    attempt_id = await till.begin(invoice())
    await store.ledger.write(attempts.amend, till.book, attempt_id, invoice(amounts=(("B", 14999),)))
    record = store.ledger.peek(attempts.find_record, till.book, attempt_id)
    assert (record.state, record.total_ttc, record.invoice.total_ttc) == ("begun", 14999, 14999)
    await till.finish(attempt_id, record.invoice)
    with pytest.raises(NotFound):
        await store.ledger.write(attempts.amend, till.book, attempt_id, invoice())


async def test_a_number_under_way_is_busy(store: Store, till: Till) -> None:
    """Two attempts never hold one number, and the second hears that nothing was sent."""
    await till.begin(invoice())
    with pytest.raises(MachineBusy):
        await till.begin(invoice())
    assert store.ledger.peek(attempts.find_number, till.book, "F-1") is None


async def test_a_disputed_attempt_holds_its_number_and_has_no_place(store: Store, till: Till) -> None:
    """What cannot be known is not in the order of what ended, and its number is not given out."""
    attempt_id = await till.begin(invoice())
    await store.ledger.dispute(till.book, attempt_id, "the machine says F-9", at=till.at)
    record = store.ledger.peek(attempts.find_record, till.book, attempt_id)
    assert (record.state, record.seq, record.reason) == ("disputed", 0, "the machine says F-9")
    assert (store.ledger.peek(book_state, till.book)).attention == "the machine says F-9"
    assert store.ledger.peek(attempts.unfinished, till.book) == []
    assert store.ledger.peek(attempts.find_number, till.book, "F-1") == record
    with pytest.raises(DuplicateInvoice):
        await till.begin(invoice())
    with pytest.raises(NotFound):
        await store.ledger.dispute(till.book, attempt_id, "again", at=till.at)


async def test_reconciling_takes_the_machines_word(store: Store, till: Till) -> None:
    """FiscalCounters, rates and IFU become known; what is unexplained adds up; nothing new writes nothing."""
    till.counters = FiscalCounters(40, 30, 2)
    await store.ledger.reconcile(till.book, till.state(), unexplained=0, at=START)
    state = store.ledger.peek(book_state, till.book)
    assert (state.counters, state.rates, state.ifu) == (FiscalCounters(40, 30, 2), RATES, IFU)
    commits = store.retention.commits
    await store.ledger.reconcile(till.book, till.state(), unexplained=0, at=START)
    assert store.retention.commits == commits
    await store.ledger.reconcile(till.book, till.state(), unexplained=2, at=START)
    await store.ledger.reconcile(till.book, till.state(), unexplained=1, at=START)
    assert (store.ledger.peek(book_state, till.book)).unexplained == 3


async def test_time_never_goes_back(store: Store, till: Till) -> None:
    """Decision 21: a box whose clock fell back to 1970 does not write records or closures older than those before."""
    first = await till.sell()
    till.at = 0
    second = await till.sell()
    assert second.ended_at == first.ended_at
    till.at = 0
    closure = await till.close()
    assert closure.created_at == first.ended_at
    assert closure.period_start <= closure.period_end


async def test_attempts_end_in_the_order_of_their_ends(store: Store, till: Till) -> None:
    """seq is the order on the machine, not that of the intents: the next intent is written while the line is busy."""
    one, two = invoice("F-1"), invoice("F-2")
    first, second = await till.begin(one), await till.begin(two)
    assert (await till.finish(second, two)).seq == 1
    assert (await till.finish(first, one)).seq == 2


async def test_callers_at_the_same_moment_share_a_commit(store: Store) -> None:
    """64 intents that wait together cost far fewer than 64 fsyncs, and one that fails does not spoil the others."""
    tills = [await Till.of(store, f"EL02{at:06d}-1") for at in range(64)]
    await tills[7].begin(invoice("F-7"))
    before = store.retention.commits
    outcomes = await asyncio.gather(
        *(till.begin(invoice(f"F-{at}")) for at, till in enumerate(tills)), return_exceptions=True
    )
    assert store.retention.commits - before <= 8
    assert [at for at, outcome in enumerate(outcomes) if isinstance(outcome, Exception)] == [7]


async def test_a_closed_ledger_is_an_error_of_storage(path: Path) -> None:
    """A request during the stop gets the 507 of a disk, not a fault of ours (seed 3101040)."""
    async with opened_till(path) as (store, till):
        pass
    with pytest.raises(StorageFull, match="closed"):
        store.ledger.peek(attempts.unfinished, till.book)


async def test_events_are_written_with_what_they_tell(store: Store, till: Till) -> None:
    """A screen that comes back reads on from the last id that it saw; another book's events are not shown to it."""
    sale = await till.sell()
    await till.close()
    await store.events.add(till.book, "mcf.disconnected", at=till.at, detail="unplugged")
    attempt_id = await till.begin(invoice("F-x"))
    await store.ledger.dispute(till.book, attempt_id, "what was found", at=till.at)
    other = await Till.of(store, "EL02000099-1")
    await other.sell()
    events = store.events.peek(events_after, till.book, 0, 100)
    assert [(e.type, e.ref_id, e.detail) for e in events] == [
        ("cert.issued", sale.id, ""),
        ("closure.created", 1, ""),
        ("mcf.disconnected", 0, "unplugged"),
        ("cert.in_doubt", attempt_id, "what was found"),
        ("mcf.attention", attempt_id, "what was found"),
    ]
    assert [e.id for e in store.events.peek(events_after, till.book, events[1].id, 100)] == [
        event.id for event in events[2:]
    ]
    assert (store.events.peek(event_span)).newest == events[4].id + 1


async def test_z_freezes_what_was_certified_before_it(store: Store, till: Till) -> None:
    """Z brings in what the tick has not, closes it in one transaction, and the next period begins where it ended."""
    first = await till.sell(10000)
    await till.sell(5000)
    closure = await till.close(unexplained=1)
    assert (closure.z_number, closure.certs_count, closure.total_ttc) == (1, 2, 15000)
    assert (closure.first_seq, closure.last_seq, closure.unexplained) == (1, 2, 1)
    assert (closure.period_start, closure.period_end) == (first.ended_at, till.at)
    assert closure.counters == FiscalCounters(2, 2, 0)
    state = store.ledger.peek(book_state, till.book)
    assert (state.z_number, state.last_at, state.unexplained) == (1, closure.created_at, 0)
    aggregate = await store.ledger.aggregated(till.book)
    assert aggregate.running == aggregate.closed
    assert (aggregate.period_start, aggregate.fvc_start, aggregate.fvc_end) == (till.at, 0, 2)
    empty = await till.close()
    assert (empty.z_number, empty.certs_count, empty.unexplained) == (2, 0, 0)
    assert (empty.first_seq, empty.last_seq) == (3, 2)
    assert await store.ledger.read(closures_between, till.book, start=0, end=till.at + 1) == [closure, empty]
    assert await store.ledger.read(closures_between, till.book, start=0, end=till.at + 1, after=1) == [empty]
    assert await store.ledger.read(closures_between, till.book, start=0, end=till.at) == [closure]
    assert await store.journal.read(periods_of, till.book, [first, await till.sell()]) == [1, 0]
    assert await store.ledger.read(find_closure, till.book, 2) == empty
    assert await store.ledger.read(find_closure_by_id, till.book, closure.report_id) == closure
    for unknown in (
        store.ledger.read(find_closure, till.book, 3),
        store.ledger.read(find_closure_by_id, till.book, "nobody's"),
    ):
        with pytest.raises(NotFound, match="there is no Z"):
            await unknown


async def test_the_tick_brings_in_what_has_ended(store: Store, till: Till) -> None:
    """Until the tick X knows nothing of it; after it, everything, and a tick with nothing new writes nothing."""
    refused = await till.fail(invoice("F-0"))
    sale = await till.sell()
    assert (await store.ledger.aggregated(till.book)).running == {}
    aggregate = await store.ledger.aggregate(till.book)
    assert aggregate.running == {**contribution(sale), **contribution(refused)}
    assert (aggregate.seq, aggregate.period_start, aggregate.fvc_start, aggregate.fvc_end) == (2, sale.ended_at, 1, 1)
    commits = store.retention.commits
    assert await store.ledger.aggregate(till.book) == aggregate
    assert store.retention.commits == commits


async def test_an_empty_period_has_the_last_fvc_known(store: Store, till: Till) -> None:
    """Decision 16, for a book that took over a machine with a history, and after a Z."""
    till.counters = FiscalCounters(40, 30, 2)
    await store.ledger.reconcile(till.book, till.state(), unexplained=0, at=START)
    assert (await store.ledger.aggregate(till.book)).fvc_end == 30
    sale = await till.sell()
    aggregate = await store.ledger.aggregate(till.book)
    assert (aggregate.fvc_start, aggregate.fvc_end) == (31, 31)
    await till.close()
    aggregate = await store.ledger.aggregated(till.book)
    assert (aggregate.fvc_start, aggregate.fvc_end) == (0, 31)
    assert sale.counters == FiscalCounters(41, 31, 2)


async def test_an_attempt_of_no_book_is_no_attempt(store: Store, till: Till) -> None:
    """A mistake of ours stays one: it is not answered as an invoice of another request."""
    with pytest.raises(sqlite3.IntegrityError):
        await store.ledger.write(
            attempts.begin, Book(99, NIM, "live"), Attempt(invoice(), till.counters, till.at, "request")
        )
    with pytest.raises(NotFound):
        store.ledger.peek(attempts.find_record, till.book, 99)


@pytest.mark.parametrize("mode", ["live", "test"])
async def test_what_a_live_machine_was_told_is_in_the_audit_log(store: Store, mode: Mode) -> None:
    """A Z and a line that was given up, with who asked for it; a sandbox's are not noted."""
    till = await Till.of(store, mode=mode)
    by = Actor("user:awa")
    await till.sell()
    closure = await till.close(call=Call(by=by))
    await store.ledger.write(audit.add_of_book, till.book, "pending.cancelled", at=till.at, by=by)
    entries = [
        (each.action, each.subject, each.actor, each.at, each.detail)
        for each in await store.ledger.read(newest_entries, 100)
    ]
    z = {"z_number": "1", "total_ttc": "15000"}
    assert entries == (
        [
            ("pending.cancelled", f"{NIM} live", "user:awa", till.at, {}),
            ("closure.created", f"{NIM} live", "user:awa", closure.created_at, z),
        ]
        if mode == "live"
        else []
    )


async def test_a_clock_that_was_confirmed_is_so_for_every_book(store: Store, till: Till) -> None:
    """There is one clock; before, nothing is."""
    other = await Till.of(store, "EL02000099-1")
    for upto in (0, START):
        if upto:
            await store.decisions.write(accept_time, upto)
        assert [(store.ledger.peek(book_state, each.book)).accepted_to for each in (till, other)] == [upto, upto]


async def test_an_end_is_written_once(store: Store, till: Till) -> None:
    """A caller that did not hear that it was stored may say it again, and who listens hears of it once; no attempt ends otherwise than the first time."""
    sale = invoice("F-1")
    attempt_id = await till.begin(sale)
    sold = await till.finish(attempt_id, sale)
    newest = store.events.peek(event_span).newest
    till.counters = FiscalCounters(0, 0, 0)
    assert await till.finish(attempt_id, sale) == sold
    assert store.events.peek(event_span).newest == newest > 0
    failed = await till.fail(invoice("F-2"))
    assert await store.ledger.write(attempts.end, till.book, failed.id, "refused", "again", at=till.at) == failed
    with pytest.raises(NotFound):
        await store.ledger.write(attempts.end, till.book, sold.id, "abandoned", "x", at=till.at)
    word = msgspec.structs.replace(till.word(sale), code="ANOTHER")
    for each in (failed.id, sold.id):
        with pytest.raises(NotFound):
            await store.ledger.write(store.ledger.certify, till.book, each, Outcome(word, sale, 15000, till.at))
    assert store.ledger.peek(book_state, till.book).last_seq == 2
