"""What happened, read from a real ledger: for streams, and as what is posted to a webhook."""

import gc
import json
import weakref
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs
from support.ledgers.ledger import START, Till, invoice, opened, opened_till, tamper

from daemon.core import events as kinds
from daemon.core.clock import millis_text
from daemon.core.invoice.number import TakenFrom
from daemon.core.ledger.deferred import DeferredSale
from daemon.core.report.receipt import receipt
from daemon.store.maintenance.backup import backup, restore
from daemon.store.store import Store
from daemon.store.tables.events import event_span
from daemon.usecases.delivery.events import (
    BATCH,
    EventNotifier,
    LastEventId,
    Start,
    events_for,
    reset_event,
    starting_point,
)
from daemon.usecases.delivery.webhook_events import WebhookEvents, compose

HOOK = "https://till.example/events"
EVERYTHING = frozenset({"cert.issued", "closure.created", "mcf.disconnected", "mcf.attention", "taxserver.alert"})
DAY = 86_400_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite3"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[Store]:
    async with opened(path, destinations={HOOK: EVERYTHING}) as store:
        yield store


@pytest.fixture
async def till(store: Store) -> Till:
    return await Till.of(store)


def notices(store: Store) -> WebhookEvents:
    return WebhookEvents(store.outbox_for(HOOK), store.events, store.ledger)


async def test_each_kind_has_its_data(store: Store, till: Till) -> None:
    """The receipt, the report of the Z, or what there is to say of the machine; no path of the box."""
    record = await till.sell()
    closure = await till.close()
    await store.events.add(till.book, "mcf.disconnected", at=START, detail="the port /dev/ttyACM0 is gone")
    await store.ledger.set_attention(till.book, "another machine", at=START)
    await store.events.add(till.book, "taxserver.alert", at=START, detail="9")
    await store.ledger.begin_outage(
        till.book, "no_answer", at=till.at, lasted=0, refused=True, incident="", is_over=False
    )
    await store.ledger.end_outage(till.book, at=till.at + 1000, until=till.at + 1000)
    events = await events_for(store.events, store.ledger, till.book, 0)
    assert [event.type for event in events] == [
        *("cert.issued", "closure.created", "mcf.disconnected", "mcf.attention", "taxserver.alert"),
        *("machine.outage", "machine.back"),
    ]
    assert [event.id for event in events] == sorted(event.id for event in events)
    assert events[0].data == msgspec.json.encode(receipt(record))
    assert events[1].data == closure.body
    common = {"nim": till.book.nim, "mode": "live", "at": "2025-12-06T05:46:40.000Z"}
    outage = {"outage": 1, "from": millis_text(till.at), "reason": "no_answer"}
    end = millis_text(till.at + 1000)
    assert [json.loads(event.data) for event in events[2:]] == [
        {**common, "reason": "the port the port is gone"},
        {**common, "found": "another machine"},
        {**common, "daysSinceContact": 9},
        {**common, "at": millis_text(till.at), **outage},
        {**common, "at": end, **outage, "to": end},
    ]


async def test_what_became_of_a_sale_says_why(store: Store, till: Till) -> None:
    """Only one that waits has a date before which it has to be certified."""
    sold = invoice("W-1")
    waiting = DeferredSale(
        0, "k", b"f", "r", sold.number, sold.type, sold.total_ttc, sold_at=till.at, address="a", invoice=sold
    )
    sale = await store.ledger.defer(till.book, waiting, "requested", TakenFrom())
    await store.ledger.refuse_sale(till.book, sale, "E:No amount!", at=till.at)
    record = await till.fail(invoice("X-1"), reason="E:Refused")
    await store.events.add(till.book, kinds.REFUSED, at=START, ref=record.id)
    await store.events.add(till.book, kinds.IN_DOUBT, at=START, ref=record.id, detail="no answer")
    events = await events_for(store.events, store.ledger, till.book, 0)
    data = [json.loads(event.data) for event in events]
    assert [
        (event.type, each["invoiceNumber"], each.get("reason"), each.get("regulariseBefore"))
        for event, each in zip(events, data, strict=True)
    ] == [
        (kinds.DEFERRED, "W-1", None, millis_text(sale.due_at)),
        (kinds.REFUSED, "W-1", "E:No amount!", None),
        (kinds.REFUSED, "X-1", "E:Refused", None),
        (kinds.IN_DOUBT, "X-1", "no answer", None),
    ]


async def test_who_has_stopped_listening_stays_in_no_memory(till: Till) -> None:
    """A box has thousands of streams that come and go."""
    notifier = EventNotifier()
    with notifier.listening(till.book) as news:
        notifier.notify(till.book)
        assert news.is_set()
    gone = weakref.ref(news)
    del news
    gc.collect()
    assert gone() is None


async def test_a_stream_goes_on_where_it_was(store: Store, till: Till) -> None:
    """In parts, without gaps, and of its own book only."""
    sandbox = await Till.of(store, mode="test")
    for _ in range(BATCH + 5):
        await till.sell()
        await sandbox.sell()
    first = await events_for(store.events, store.ledger, till.book, 0)
    rest = await events_for(store.events, store.ledger, till.book, first[-1].id)
    assert (len(first), len(rest)) == (BATCH, 5)
    numbers = [json.loads(event.data)["invoiceNumber"] for event in (*first, *rest)]
    assert numbers == [f"S-{number}" for number in range(1, BATCH + 6)]


async def test_where_a_stream_begins(store: Store, till: Till) -> None:
    """Without a last event now, with one after it. Events of more than a week ago are gone: a listener that returns from before is notified, and then all that is kept."""
    for _ in range(12):  # retention goes by the book's days
        await till.sell()
        till.at += DAY
    span = store.events.peek(event_span)
    for seen, start in ((None, span.newest), (LastEventId(0, span.newest - 1), span.newest - 1)):
        assert await starting_point(store.events, seen) == Start(start, 0)
    assert await starting_point(store.events, LastEventId(0, span.newest)) == Start(span.newest, 0)
    await store.retention.prune(till.at)
    span = store.events.peek(event_span)
    assert await starting_point(store.events, LastEventId(0, 1)) == Start(span.oldest - 1, 0, "expired")
    assert await starting_point(store.events, LastEventId(0, span.oldest - 1)) == Start(span.oldest - 1, 0)


async def test_a_stream_cannot_go_on_in_a_ledger_that_was_put_back(tmp_path: Path) -> None:
    """Its ids are given again: a stream from before is told so and begins now; the epoch stands in the ids from then on."""
    path, copy = tmp_path / "ledger.sqlite3", tmp_path / "copy"
    async with opened(path) as store:
        await (await Till.of(store)).sell()
    backup(path, copy, at=START)
    async with opened_till(path) as (store, till):
        await till.sell()
        seen = LastEventId(0, (store.events.peek(event_span)).newest)
        assert (await starting_point(store.events, LastEventId(0, seen.id + 1000))).reset == "restored"
    restore(copy, path, at=START)
    async with opened_till(path) as (store, till):
        await till.sell()
        assert (store.events.peek(event_span)).newest == seen.id
        start = await starting_point(store.events, seen)
        assert start == Start(seen.id, START // 1000, "restored")
        assert await starting_point(store.events, LastEventId(start.epoch, start.after)) == start._replace(reset="")
        event = reset_event(till.book, start, START)
    assert (event.id, event.type) == (seen.id, "reset")
    assert json.loads(event.data) == {
        "nim": till.book.nim,
        "mode": "live",
        "at": "2025-12-06T05:46:40.000Z",
        "reason": "restored",
    }


DAMAGE = {
    "payload": "UPDATE certification SET payload = x'00' WHERE id = 1",
    "empty": "UPDATE certification SET payload = x'' WHERE id = 1",
    "cut off": "UPDATE certification SET payload = substr(payload, 1, 20) WHERE id = 1",
    "no code": "UPDATE certification SET code = NULL, tc = NULL WHERE id = 1",
    "no receipt": "UPDATE certification SET machine_time = 7, ifu = NULL, ended_at = NULL WHERE id = 1",
    "closure": "UPDATE closure SET body = x'ff7b' WHERE z_number = 1",
    "no closure": "UPDATE closure SET z_number = 99 WHERE z_number = 1",
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
async def test_whatever_is_damaged_holds_up_nobody(store: Store, till: Till, path: Path, damage: str) -> None:
    """The stream and the webhook's queue tell the rest, and of the damaged one why."""
    await till.sell()
    await till.close()
    await till.sell()
    tamper(path, damage)
    with capture_logs() as logs:
        events = await events_for(store.events, store.ledger, till.book, 0)
        postings = await notices(store).waiting(till.book.nim, "live", 10)
    assert len(events) == len(postings) == 3
    for event in events:
        json.loads(event.data)
    assert json.loads(events[2].data)["invoiceNumber"] == "S-2"
    for posting in postings:
        if posting.body:
            json.loads(compose(posting))
        else:
            assert posting.missing
            with pytest.raises(ValueError, match="cannot be read"):
                compose(posting)
    assert postings[2].body
    assert all(line["cause"] for line in logs)


async def test_a_posting_says_what_and_of_which_book(store: Store, till: Till) -> None:
    """`type` and `data` as clients of the hosted service read them; mode tells the sandbox from money."""
    record = await till.sell()
    await store.ledger.set_attention(till.book, "another machine", at=till.at)
    sale, attention = await notices(store).waiting(till.book.nim, "live", 10)
    assert json.loads(compose(sale)) == {
        "type": "cert.issued",
        "timestamp": "2025-12-06T05:47:40.050Z",
        "nim": till.book.nim,
        "mode": "live",
        "data": json.loads(msgspec.json.encode(receipt(record))),
    }
    assert json.loads(compose(attention))["data"]["found"] == "another machine"
    assert sale.names["webhook_id"] == sale.report_id


async def test_an_event_keeps_its_id(store: Store, till: Till, tmp_path: Path) -> None:
    """At every try; two events never have the same, one of a ledger that was put back from a backup included."""
    await till.sell(600)
    await till.sell(700)
    first, again = [await notices(store).waiting(till.book.nim, "live", 10) for _ in range(2)]
    assert first == again
    async with opened(tmp_path / "restored.sqlite3", destinations={HOOK: EVERYTHING}) as other:
        await (await Till.of(other)).sell(800)  # the row has the number of the first one
        (elsewhere,) = await notices(other).waiting(till.book.nim, "live", 10)
    ids = {posting.report_id for posting in (*first, elsewhere)}
    assert len(ids) == 3
    assert all("." not in each for each in ids)


async def test_an_event_let_go_of_is_not_posted(store: Store, till: Till) -> None:
    """After a week without a receiver nobody wants to hear that a machine was gone; a certification is posted all the same."""
    await store.events.add(till.book, "mcf.disconnected", at=START)
    for _ in range(8):
        till.at += DAY
        await till.sell()
    await store.retention.prune(till.at)
    gone, sale, *_ = await notices(store).waiting(till.book.nim, "live", 10)
    with pytest.raises(ValueError, match="let go of"):
        compose(gone)
    assert json.loads(compose(sale))["type"] == "cert.issued"
