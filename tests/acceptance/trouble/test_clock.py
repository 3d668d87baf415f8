"""A box without a clock battery: it wakes up in 1970, it jumps by hours; periods and closures keep their order (decision 21).

The daemon's `time.time_ns` is moved, as `settimeofday` would move it; the machine's clock stays right.
"""

import html
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from support.browser import Visitor, create_users
from support.crash.crashing import armed
from support.shop import Machine, Shop, invoice, wait_for

from daemon.store.maintenance.verify import verify

HOUR = 3600.0
CLOSE = 60.0
"""Seconds between a time in an answer and the machine's that count as equal here."""


class Box:
    """A shop whose box has a clock of its own."""

    def __init__(self, shop: Shop, jump: Callable[[float], object]) -> None:
        self.shop = shop
        self.jump = jump
        """Sets how many seconds the box's clock is off from now on."""

    def sell(self, number: str) -> None:
        assert self.shop.certify(invoice(number)).status_code == 200

    def close(self) -> dict[str, Any]:
        return self.shop.close_period().json()

    @property
    def drift(self) -> int:
        return self.shop.http.get("/health/ready").json()["machines"][0]["clockDrift"]


@contextmanager
def opened(folder: Path, off: float) -> Iterator[Box]:
    jumps = folder / "crash.clock"
    machines, sandbox = (Machine(folder, lasting=False),), {"sandbox": {"enabled": False}}
    with Shop(folder, first=armed(folder / "crash", clock=off), machines=machines, config=sandbox) as shop:
        shop.machines[0].start()
        shop.start_daemon()
        yield Box(shop, lambda seconds: jumps.write_text(str(seconds)))
        assert verify(shop.ledger).clean


def age(text: str) -> float:
    """Seconds from a time of an answer to now, as the machine has it."""
    return (datetime.now(UTC) - datetime.fromisoformat(text)).total_seconds()


def test_a_box_that_wakes_up_in_1970_takes_the_machines_time(tmp_path: Path) -> None:
    """From the first report on; the difference is logged once, and shown."""
    with opened(tmp_path, -time.time()) as box:
        box.sell("F-1")
        closure = box.close()
        assert abs(age(closure["period_start"])) < CLOSE
        assert abs(age(closure["created_at"])) < CLOSE
        assert box.drift < -20 * 365 * 24 * HOUR
        assert len(box.shop.events("clock.drift")) == 1
        assert box.shop.get("reports").json()["count"] == 1


def test_the_page_shows_what_both_clocks_say(tmp_path: Path) -> None:
    """The difference was said in minutes, fourteen million of them for a box in 2000: nobody saw which clock was wrong. Last night's copy is no copy of years
    ago on a box that takes it to be 2040."""
    ahead = datetime(2040, 6, 1, 10, tzinfo=UTC).timestamp() - time.time()
    with opened(tmp_path, 0.0) as box:
        create_users(box.shop, ["seller"])
        box.shop.mcfd("backup", "--into", str(tmp_path / "backups"), check=True)
        with Visitor(box.shop, "seller") as seller:
            assert 'data-level="good"' in seller.look("/ui/state")
        box.jump(ahead)
        wait_for(lambda: abs(box.drift) > HOUR, "the difference")
        with Visitor(box.shop, "seller") as seller:
            state = html.unescape(seller.look("/ui/state"))
            today = html.unescape(seller.look("/ui/"))
        assert "celle du boîtier dit 01/06/2040 10:" in state, state
        assert f"celle de la machine {datetime.now(UTC):%d/%m/%Y} " in state, state
        assert "copie" not in state
        assert f"son horloge\N{NO-BREAK SPACE}: {datetime.now(UTC):%d/%m/%Y} " in today
