"""Server-sent events on a running daemon: at once, in order, resumable, each key its own book."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.processor import within
from support.shop import NIM, Shop, invoice
from support.sse import Screen
from support.till import certified, fresh, invalid


@pytest.fixture
def own_shop(tmp_path: Path) -> Iterator[Shop]:
    """For tests that stop the daemon or the machine."""
    with Shop(tmp_path) as shop:
        yield shop


def test_a_certification_is_told_at_once(shop: Shop) -> None:
    """Within a blink of its answer, to every screen, with the receipt, and a closure with the report, as the till got it."""
    with Screen(shop) as one, Screen(shop) as other:
        receipt = certified(shop.certify(invoice(fresh())))
        with within(5, *shop.pids):
            for screen in (one, other):
                (event,) = screen.wait_for("cert.issued")
                assert event.data == receipt
        report = shop.close_period().json()
        (closed,) = one.wait_for("closure.created")
    assert closed.data == report


def test_nothing_is_missed_in_between(shop: Shop) -> None:
    """A screen that comes back with the last id it saw hears everything since, each once, in order, and then goes on."""
    with Screen(shop) as screen:
        first = certified(shop.certify(invoice(fresh())))
        last = screen.wait_for("cert.issued")[-1].id
    missed = [certified(shop.certify(invoice(fresh()))) for _ in range(12)]
    with Screen(shop, last=last) as screen:
        screen.wait_for("cert.issued", 12)
        missed.append(certified(shop.certify(invoice(fresh()))))
        events = screen.wait_for("cert.issued", 13)
    assert [event.data["codeSecef"] for event in events] == [receipt["codeSecef"] for receipt in missed]
    assert first["codeSecef"] not in {event.data["codeSecef"] for event in events}
    assert [event.id for event in events] == sorted({event.id for event in events})


@pytest.mark.parametrize("last", ["x", "1-2-3"])
def test_a_last_event_that_is_none(shop: Shop, last: str) -> None:
    """422 that names the header."""
    answer = shop.http.get(f"/v1/mcf/{NIM}/events", headers={**shop.headers(), "Last-Event-ID": last.encode("latin-1")})
    assert list(invalid(answer)) == ["Last-Event-ID"]


def test_the_headers_of_a_stream(shop: Shop) -> None:
    """No proxy may keep it or hold it back."""
    with shop.http.stream("GET", f"/v1/mcf/{NIM}/events", headers=shop.headers()) as answer:
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-accel-buffering"] == "no"
        assert next(answer.iter_lines()).startswith("retry: ")


def test_a_machine_that_goes_and_comes_is_told(own_shop: Shop) -> None:
    """Why it is gone without naming its port, that it is back, and what an operator has to settle; also to who was not there."""
    own_shop.start()
    with Screen(own_shop) as screen:
        own_shop.machines[0].order("unplug")
        (gone,) = screen.wait_for("mcf.disconnected")
        own_shop.machines[0].order("plug")
        screen.wait_for("mcf.connected")
    assert gone.data["reason"]
    assert "/" not in gone.data["reason"]
    assert (gone.data["nim"], gone.data["mode"]) == (NIM, "live")
    own_shop.stop_daemon()
    own_shop.machines[0].order("counters", tc=0, fvc=0, frc=0)
    own_shop.machines[0].order("foreign-invoice")
    own_shop.start_daemon(ready=False)
    with Screen(own_shop, last=gone.id) as screen:
        (attention,) = screen.wait_for("mcf.attention")
    assert attention.data["found"]
    assert screen.types[0] == "mcf.connected"  # the one that was missed
