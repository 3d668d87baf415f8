"""Idempotency-Keys in the ledger (decision 6): one key stands for one request, and is let go of when that failed."""

from functools import partial
from pathlib import Path

import pytest
from support.ledgers.ledger import MINUTE, NIM, Till, invoice, tamper

from daemon.core.audit import INTERNAL, Actor, Call
from daemon.core.errors import KeyReused, LedgerUnusable
from daemon.core.ledger.attempt import NOT_CERTIFIED, NOT_SENT, Record
from daemon.core.ledger.book import Closure, KeyUse
from daemon.core.ledger.entries import CashMove, ReportAct
from daemon.core.ledger.outage import Notice
from daemon.core.machine.state import FiscalCounters
from daemon.store.decisions import DecisionNote
from daemon.store.sqlite.high_water import HighWater
from daemon.store.store import Store
from daemon.store.tables.audit import newest_entries
from daemon.store.tables.book import acts, attempts, outages, uniqueness
from daemon.store.tables.book.books import book_state
from daemon.store.tables.events import event_span, events_after

KEY, BODY = b"k" * 16, b"f" * 16


@pytest.mark.parametrize("state", ["refused", "abandoned"])
async def test_a_failed_attempt_frees_number_and_key(store: Store, till: Till, state: str) -> None:
    """An attempt that did not end certified uses neither up (decisions 5 and 6), for the same body or another."""
    failed = await till.fail(invoice(), state, key=KEY)
    assert (failed.state, failed.seq, failed.reason) == (state, 1, "E:No amount!")
    assert store.ledger.peek(attempts.find_number, till.book, "F-1") is None
    assert store.ledger.peek(uniqueness.find_key, till.book, KEY) is None
    record = await till.certify(invoice(), KEY, b"other body")
    use = store.ledger.peek(uniqueness.find_key, till.book, KEY)
    assert (use.record, use.fingerprint) == (record, b"other body")


async def test_a_key_stands_for_one_request(store: Store, till: Till) -> None:
    """The same key for another invoice is refused, and that invoice leaves no trace."""
    record = await till.certify(invoice("F-1"), KEY, BODY)
    with pytest.raises(KeyReused):
        await till.begin(invoice("F-2"), KEY, b"x" * 16)
    assert store.ledger.peek(attempts.unfinished, till.book) == []
    use = store.ledger.peek(uniqueness.find_key, till.book, KEY)
    assert use.record == record


async def test_a_key_is_found_while_its_request_runs(store: Store, till: Till) -> None:
    """The note of the key is written with the intent, not with the outcome."""
    attempt_id = await till.begin(invoice(), KEY, BODY)
    use = store.ledger.peek(uniqueness.find_key, till.book, KEY)
    base = FiscalCounters(0, 0, 0)
    begun = Record(
        attempt_id, "F-1", "FV", "begun", till.at, base, 15_000, invoice(), request_id="request-F-1", nim=NIM
    )
    assert (use.fingerprint, use.record) == (BODY, begun)


@pytest.mark.parametrize("table", ["certification", "closure"])
async def test_a_key_whose_record_is_lost_is_not_taken_for_a_new_one(
    store: Store, till: Till, path: Path, table: str
) -> None:
    """A ledger that was mended without some rows still has their keys: a till that repeats such a request is neither served anew nor told that
    there is no such thing, after which it would send it under another key."""
    await till.certify(invoice("F-1"), KEY, BODY)
    call = Call(key="of a Z", fingerprint=BODY)
    await till.close(call=call)
    tamper(path, f"DELETE FROM {table}")  # noqa: S608  names of ours
    with pytest.raises(LedgerUnusable, match="lost in a damaged ledger"):
        store.ledger.peek(uniqueness.find_key, till.book, KEY if table == "certification" else call.key_hash)


async def test_each_act_keeps_its_answer_under_its_key(store: Store, till: Till, path: Path) -> None:
    """A Z itself, the others what was answered; with who asked for it in the audit log. Copies and reports of articles are counted from 1."""
    await till.certify(invoice("F-1"))
    book, ledger, now, later = till.book, store.ledger, till.at, till.at + 70 * DAY
    await ledger.begin_outage(book, "line_lost", at=now, lasted=0, refused=False, incident="", is_over=False)
    move, report = CashMove("deposit", 5, "float", "1", "Awa"), ReportAct("articles", "", upto_seq=1)
    give = partial(ledger.write, acts.insert_report, book, report, at=now, answer=lambda number: b"%d" % number)
    note = partial(outages.note_notified, answer=lambda outage: b"%d" % outage.number)
    calls = [
        *((give, number) for number in (b"1", b"2")),
        (partial(ledger.write, note, book, 1, Notice("administration", "A-1", now), at=now), b"1"),
        (partial(ledger.write, acts.move_cash, book, move, at=now, answer=lambda _: b"moved"), b"moved"),
        (till.close, b""),
        (partial(ledger.close_calendar, book, "month", "2026-01", at=later), b"{"),
    ]
    for at, (act, answer) in enumerate(calls):
        call = Call(key=f"key {at}", fingerprint=BODY, by=Actor("user:awa"))
        result = await act(call=call)
        use = ledger.peek(uniqueness.find_key, book, call.key_hash)
        if isinstance(result, Closure):
            assert use == KeyUse(BODY, closure=result)
        else:
            assert use == KeyUse(BODY, answer=result.body.encode() if act is give else result)
            assert use.answer.startswith(answer)
        with pytest.raises(KeyReused):
            await act(call=call)
    placed = ledger.peek(acts.closed_articles, book, 2)
    assert (placed.entry.number, ledger.peek(acts.issued_report, book, placed.id)) == (2, placed)
    (mark,) = HighWater(path).marks.books.values()  # durable for a copy that is put back
    assert (mark.months, mark.years, ledger.peek(book_state, book).z_number) == (2, 1, 1)
    assert await ledger.write(acts.insert_report, book, report, at=later, call=INTERNAL) == report
    copy = partial(ledger.write, acts.make_copy, book, "CODE", "F-1", at=later, call=call)
    assert [await copy(), await copy()] == [1, 2]
    entries = [(entry.action, entry.actor) for entry in await ledger.read(newest_entries, 7)]
    actions = [action for action, actor in entries if actor == "user:awa"]
    assert actions == ["copy.made"] * 2 + ["calendar.closed"] * 3 + ["closure.created"]
    assert entries[2] == ("report.given", INTERNAL.by.name)


async def test_keys_of_two_books_are_two_keys(store: Store, till: Till) -> None:
    """A client's key means nothing on another machine."""
    await till.certify(invoice(), KEY, BODY)
    other = await Till.of(store, "EL02000099-1")
    assert store.ledger.peek(uniqueness.find_key, other.book, KEY) is None


DAY = 24 * 60 * MINUTE


async def days(till: Till, count: int) -> None:
    """The shop goes on: a sale with a key on each of that many days."""
    for _ in range(count):
        till.at += DAY
        number = f"S-{till.at}"
        await till.certify(invoice(number), number.encode(), BODY)


async def test_pruning_lets_go_of_old_keys_and_events_only(store: Store, till: Till, path: Path) -> None:
    """Keys stay 30 days and events 7, counted in days on which the book has any; certifications and closures for ever; no event id is given twice."""
    await till.certify(invoice("F-1"), KEY, BODY)
    await till.close()
    await days(till, 7)
    assert await store.retention.prune(till.at) == 0
    await days(till, 1)
    assert await store.retention.prune(till.at) == 2
    assert (store.events.peek(event_span)).oldest == 3
    await days(till, 22)
    await store.retention.prune(till.at)
    assert store.ledger.peek(uniqueness.find_key, till.book, KEY) is not None
    newest = (store.events.peek(event_span)).newest
    await days(till, 1)
    assert await store.retention.prune(till.at) == 2
    assert store.ledger.peek(uniqueness.find_key, till.book, KEY) is None
    assert (store.events.peek(event_span)).newest == newest + 1
    assert (store.ledger.peek(book_state, till.book)).last_seq == 32
    assert await store.retention.prune(till.at) == 0


@pytest.mark.parametrize("other_days", [0, 20])
@pytest.mark.parametrize("jumps", [1, 5])
async def test_a_clock_that_was_ahead_deletes_no_key(store: Store, till: Till, other_days: int, jumps: int) -> None:
    """30.5 days ahead for one sale and one tidy-up, and however often that happens within days: a Z of minutes ago is replayed by its key."""
    await days(till, other_days)
    call = Call(key="of a Z", fingerprint=BODY)
    closure = await till.close(call=call)
    for at in range(jumps):
        till.at += 30 * DAY + DAY // 2
        await till.certify(invoice(f"AHEAD-{at}"), f"key-{at}".encode(), BODY)
        await store.retention.prune(till.at)
    use = store.ledger.peek(uniqueness.find_key, till.book, call.key_hash)
    assert use.closure == closure


async def test_the_time_of_another_machine_s_book_deletes_no_key(store: Store, till: Till) -> None:
    """Each book counts its own days."""
    await till.certify(invoice("F-1"), KEY, BODY)
    await days(await Till.of(store, "EL02000099-1"), 60)
    assert await store.retention.prune(till.at + 100 * DAY)
    assert store.ledger.peek(uniqueness.find_key, till.book, KEY) is not None


async def test_a_clock_that_was_ahead_deletes_no_event(store: Store, till: Till) -> None:
    """Screens that come back, and receivers that were away, still get what happened minutes ago."""
    await till.sell()
    till.at += 8 * DAY
    await till.sell()
    assert await store.retention.prune(till.at) == 0
    assert len(store.events.peek(events_after, till.book, 0, 100)) == 2


async def test_what_was_taken_for_failed_is_what_38h_may_have_been_sent_of(store: Store, till: Till) -> None:
    """An attempt of that number, type and total that was refused, or never got as far as 38h, cannot have been certified; nor can one of another
    number, type or total."""

    async def was(number: str, total: int = 1000, type_: str = "FV") -> bool:
        return store.ledger.peek(
            attempts.was_at_the_machine, till.book, invoice(number, type_=type_, amounts=(("B", total),))
        )

    await till.fail(invoice("F-1", amounts=(("B", 1000),)), "abandoned", NOT_CERTIFIED)
    assert await was("F-1")
    assert not await was("F-1", 999)
    assert not await was("F-1", type_="EV")
    attempt = await till.begin(invoice("F-2", amounts=(("B", 1000),)))
    await store.ledger.dispute(till.book, attempt, "no known outcome", at=till.at)
    await store.decisions.write(
        store.decisions.abandon, till.book, attempt, note=DecisionNote("so the manager says", till.at)
    )
    assert await was("F-2")
    await till.fail(invoice("F-3", amounts=(("B", 1000),)), "refused", "Invoice number already certified")
    await till.fail(invoice("F-4", amounts=(("B", 1000),)), "abandoned", "the machine does not answer")
    await till.fail(invoice("F-5", amounts=(("B", 1000),)), "abandoned", NOT_SENT)
    await till.certify(invoice("F-6", amounts=(("B", 1000),)))
    await till.begin(invoice("F-7", amounts=(("B", 1000),)))
    assert not any([await was(f"F-{number}") for number in range(3, 9)])
