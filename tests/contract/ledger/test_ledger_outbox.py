"""The outbox rows of the ledger: written with what they are about, one queue for each destination and book."""

from pathlib import Path

import msgspec
from support.ledgers.ledger import NIM, START, Till, invoice, opened_till, query

from daemon.core.audit import Actor
from daemon.core.clock import DAY
from daemon.core.ledger.chain import GENESIS
from daemon.core.machine.state import FiscalCounters
from daemon.store import outbox
from daemon.store.outbox import resettle
from daemon.store.store import Store
from daemon.store.tables.audit import newest_entries
from daemon.store.tables.book.books import new_book
from daemon.store.tables.events import CLOSURE
from daemon.usecases.delivery.webhook_events import WebhookEvents


async def test_a_closure_waits_from_the_moment_it_exists(store: Store, till: Till) -> None:
    """In order, with the body that the till got; sent, failed and parked ones are distinguished."""
    closures = [await till.close() for _ in range(4)]
    waiting = await store.outbox.waiting(NIM, "live", 10)
    assert [(o.z_number, o.report_id, o.body, o.chain) for o in waiting] == [
        (c.z_number, c.report_id, c.body, c.hash) for c in closures
    ]
    await store.outbox.mark_sent(waiting[0].id, at=START + 1)
    await store.outbox.park(waiting[1].id, "400 no", at=START + 2)
    await store.outbox.mark_failed(waiting[2].id, "503 later", at=START + 3, next_at=START + 9)
    assert [o.z_number for o in await store.outbox.waiting(NIM, "live", 10)] == [3, 4]
    [backlog] = await store.outbox.backlog()
    assert (backlog.waiting, backlog.parked, backlog.oldest_at) == (2, 1, closures[2].created_at)
    assert (backlog.last_error, backlog.last_error_at, backlog.last_sent_at) == ("503 later", START + 3, START + 1)


async def test_the_closure_of_a_month_waits_as_a_z_does(store: Store, till: Till) -> None:
    """And that of a year, in the order in which they were made."""
    closure = await till.close()
    await store.ledger.close_over_months(till.book, START + 62 * DAY)
    first, *over = await store.outbox.waiting(NIM, "live", 10)
    assert first.report_id == closure.report_id
    assert [(each.kind, msgspec.json.decode(each.body)["period"]) for each in over] == [
        ("month", "2025-12"),
        ("year", "2025"),
        ("month", "2026-01"),
    ]


async def test_two_taxpayers_of_one_machine_have_one_queue(store: Store, till: Till) -> None:
    """Its name may be the same for both: closures and events of both books are delivered."""
    other = await Till.of(store)
    other.book = await store.ledger.write(new_book, NIM, "live")
    first, second = await till.close(), await other.close()
    waiting = await store.outbox.waiting(NIM, "live", 10)
    assert [each.report_id for each in waiting] == [first.report_id, second.report_id]
    for entry in waiting:
        await store.outbox.park(entry.id, "400 no", at=START)
    assert await store.outbox.offer_again(NIM, "live", before=START + 1) == 2
    events = WebhookEvents(store.outbox, store.events, store.ledger)
    assert [msgspec.json.decode(each.body)["data"]["report_id"] for each in await events.waiting(NIM, "live", 10)] == [
        first.report_id,
        second.report_id,
    ]


async def test_closures_are_sent_again(store: Store) -> None:
    """Parked ones, or everything from a Z number on, of one NIM or of all; from one number to another, as headquarters asks for it, of one book."""
    other = "EL02000099-1"

    async def waiting(nim: str = NIM) -> list[int]:
        return [entry.z_number for entry in await store.outbox.waiting(nim, "live", 10)]

    for till in (await Till.of(store), await Till.of(store, other)):
        for _ in range(3):
            await till.close()
        first, second, third = await store.outbox.waiting(till.book.nim, "live", 10)
        for entry in (first, second):
            await store.outbox.mark_sent(entry.id, at=START)
        await store.outbox.park(third.id, "no", at=START)
    assert await store.outbox.resend(NIM, "live", 1, 1) == 1
    assert (await waiting(), await waiting(other)) == ([1], [])
    assert await store.outbox.replay(nim=NIM, from_z=None, at=1) == 1
    assert await store.outbox.resend(NIM, "live", 2, 2**53 - 1) == 1
    assert (await waiting(), await waiting(other)) == ([1, 2, 3], [])
    assert await store.outbox.replay(nim=None, from_z=2, at=1) == 2
    assert await waiting(other) == [2, 3]


async def test_what_was_parked_waits_again_after_a_while(store: Store) -> None:
    """What was parked before that moment, of one book; their number is returned, and nothing is written when there is nothing."""
    tills = [await Till.of(store), await Till.of(store, "EL02000099-1")]
    for till in tills:
        for z_number in (1, 2, 3):
            await till.close()
            [entry] = await store.outbox.waiting(till.book.nim, "live", 10)
            await store.outbox.park(entry.id, "400 no", at=START + z_number)
    commits = store.retention.commits
    assert await store.outbox.offer_again(NIM, "live", before=START + 1) == 0
    assert store.retention.commits == commits
    assert await store.outbox.offer_again(NIM, "live", before=START + 3) == 2
    assert [o.z_number for o in await store.outbox.waiting(NIM, "live", 10)] == [1, 2]
    assert [(of.nim, of.waiting, of.parked) for of in await store.outbox.backlog()] == [
        (NIM, 2, 1),
        ("EL02000099-1", 0, 3),
    ]


async def test_other_destinations_get_the_events_that_they_want(tmp_path: Path) -> None:
    """A webhook has its own queue, and its own sent and parked ones."""
    path, sent = tmp_path / "ledger.sqlite3", "SELECT count(*) FROM outbox WHERE state = 'sent'"
    destinations = {"upstream": frozenset({CLOSURE}), "hook": frozenset({"cert.issued", CLOSURE})}
    async with opened_till(tmp_path / "ledger.sqlite3", destinations=destinations) as (store, till):
        sale = await till.sell()
        await till.close()
        hook = store.outbox_for("hook")
        notices = await hook.waiting_events(till.book, 10)
        assert [(n.type, n.ref_id, n.tries) for n in notices] == [("cert.issued", sale.id, 0), (CLOSURE, 1, 0)]
        await hook.mark_sent(notices[0].id, at=START)
        assert [n.type for n in await hook.waiting_events(till.book, 10)] == [CLOSURE]
        assert len(await store.outbox.waiting(NIM, "live", 10)) == 1
        for day in range(1, 9):  # the shop goes on: retention goes by the book's own days
            till.at += 86_400_000
            await till.certify(invoice(f"LATER-{day}"))
            await store.retention.prune(till.at)
            *_, newest = await hook.waiting_events(till.book, 100)
            await hook.mark_sent(newest.id, at=START + day * 86_400_000)
        assert query(path, sent) == [(9,)]
        await store.retention.prune(till.at + 1)
        assert query(path, sent) == [(8,)]


async def test_a_ledger_without_destinations_sends_nothing(tmp_path: Path) -> None:
    """No destination, no rows."""
    async with opened_till(tmp_path / "ledger.sqlite3", destinations={}) as (store, till):
        await till.close()
        assert await store.outbox.backlog() == []


async def test_what_is_sent_again_is_in_the_audit_log(store: Store, till: Till) -> None:
    """How many, and what was asked for; nothing where there is nothing to send."""
    by = Actor("user:awa")
    for at in range(3):
        await till.close()
        [entry] = await store.outbox.waiting(NIM, "live", 10)
        await (store.outbox.mark_sent(entry.id, at=at) if at else store.outbox.park(entry.id, "no", at=at))
    newest = len(await store.ledger.read(newest_entries, 100))
    for nim, from_z in ((None, None), (None, None), (NIM, 2), (None, 2)):
        await store.outbox.replay(nim=nim, from_z=from_z, at=START, by=by)
    entries = (await store.ledger.read(newest_entries, 100))[: -newest or None]
    assert [(each.action, each.subject, each.actor, each.at, each.detail) for each in entries] == [
        ("outbox.replayed", "upstream", "user:awa", START, {"count": "2", "nim": NIM, "from_z": "2"}),
        ("outbox.replayed", "upstream", "user:awa", START, {"count": "1"}),
    ]


async def test_a_proof_begins_where_the_z_before_it_ended(store: Store, till: Till) -> None:
    """With each counter of the machine as it was then; the first Z of a book has nothing before it."""
    till.counters = FiscalCounters(60, 40, 20)
    closures = [await till.close()]
    await till.sell()
    closures.append(await till.close())
    first, second = [entry.proof for entry in await store.outbox.waiting(NIM, "live", 10)]
    assert (first.previous_report_id, first.previous_head, first.opening) == (None, GENESIS, None)
    assert (second.previous_report_id, second.previous_head) == (closures[0].report_id, closures[0].hash)
    assert (second.first_seq, second.last_seq, second.opening) == (1, 1, (60, 40, 20))


async def test_what_was_sent_to_a_receiver_that_is_gone_goes_with_it(tmp_path: Path) -> None:
    """It counts for nothing, and its rows would stay for ever."""
    async with opened_till(tmp_path / "ledger.sqlite3", destinations={"hook": frozenset({"cert.issued"})}) as (
        store,
        till,
    ):
        await till.sell()
        [sale] = await store.outbox_for("hook").waiting_events(till.book, 10)
        await store.outbox_for("hook").mark_sent(sale.id, at=START)
        assert await store.retention.write(resettle, {}) == outbox.Resettled(0, 0)
        assert await store.outbox_for("hook").backlog() == []
