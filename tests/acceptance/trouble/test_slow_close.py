"""A machine that falls silent at 38h: somebody hears of it long before it counts as lost, and the sale is certified once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from support.hurried import launch_still
from support.shop import Shop, invoice, wait_for

from daemon.store.tables.book.books import all_books
from daemon.store.tables.events import events_after


def test_silence_at_38h_is_told_while_it_is_waited_for(tmp_path) -> None:
    """Log and event, with its incident; the answer comes in its time, and 38h was executed once."""
    with (
        Shop(tmp_path, per_machine={"certify_timeout": 60.0}, launch=launch_still) as shop,
        ThreadPoolExecutor(1) as till,
    ):
        shop.start().machines[0].order("pause-at", next=6, when="before", direction="in")
        answer = till.submit(shop.certify, invoice("F-1"))
        slow = wait_for(lambda: shop.events("certification.slow"), "the notice")
        assert not answer.done()
        assert slow[0]["invoice_number"] == "F-1"
        assert slow[0]["incident"]
        shop.machines[0].order("resume")
        assert answer.result().status_code == 200
        assert [sale["number"] for sale in shop.machines[0].certified()] == ["F-1"]
        [book, *_] = shop.with_store(lambda store: store.journal.read(all_books))
        events = shop.with_store(lambda store: store.events.peek(events_after, book, 0))
        assert [event.type for event in events if event.type in ("cert.issued", "mcf.slow")] == [
            "mcf.slow",
            "cert.issued",
        ]
