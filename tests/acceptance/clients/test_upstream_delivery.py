"""Closures on their way from the till's Z to headquarters, with the daemon killed in the middle of it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.receivers.headquarters import HttpHeadquarters
from support.shop import NIM, Shop, invoice, wait_for

pytestmark = pytest.mark.long

CLOSURES = 12


@pytest.fixture
def headquarters(tmp_path: Path) -> Iterator[HttpHeadquarters]:
    with HttpHeadquarters(tmp_path) as found:
        yield found


def test_a_daemon_killed_while_it_delivers_sends_the_rest_in_order(
    tmp_path: Path, headquarters: HttpHeadquarters
) -> None:
    """SIGKILL with closures waiting, some sent and one on its way: after the restart all are there, by number, each
    once after the receiver's own deduplication, and `mcfd upstream status` has nothing waiting."""
    upstream = {"kind": "https", "url": headquarters.url, "retry_max": 1.0, "secret_file": str(headquarters.keys.file)}
    with Shop(tmp_path, config={"upstream": upstream}) as shop:
        shop.start()
        asyncio.run(headquarters.script(*({"delay": 0.15} for _ in range(5))))
        for number in range(1, CLOSURES + 1):
            assert shop.certify(invoice(f"Z-{number}")).status_code == 200
            assert shop.close_period().json()["z_number"] == number
            if number == CLOSURES // 2:
                wait_for(headquarters.attempts, "the first delivery")
                shop.kill_daemon()
                shop.start_daemon()
        wait_for(lambda: len(asyncio.run(headquarters.events())) == CLOSURES, "every closure upstream")
        events = asyncio.run(headquarters.events())
        assert [int(event["subject"]) for event in events] == list(range(1, CLOSURES + 1))
        assert {event["source"] for event in events} == {f"/mcf/{NIM}"}
        wait_for(lambda: shop.http.get("/health/ready").json()["upstream"][0]["waiting"] == 0, "an empty outbox")
