"""A box without a clock battery: it wakes up in 1970, it jumps by hours; periods and closures keep their order (decision 21).

The daemon's `time.time_ns` is moved, as `settimeofday` would move it; the machine's clock stays right.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from support.crash.crashing import launch
from support.nursery import Nursery
from support.shop import Machine, Shop, invoice

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
        closure: dict[str, Any] = self.shop.close_period().json()
        return closure

    @property
    def drift(self) -> int:
        drift: int = self.shop.http.get("/health/ready").json()["machines"][0]["clockDrift"]
        return drift


@contextmanager
def opened(folder: Path, nursery: Nursery, off: float, *, silent: bool = False) -> Iterator[Box]:
    wrong = partial(launch, nursery, crash=folder / "crash", clock=off)
    jumps = folder / "crash.clock"
    machines, sandbox = (Machine(folder, lasting=False),), {"sandbox": {"enabled": False}}
    with Shop(folder, launch=wrong, machines=machines, config=sandbox) as shop:
        shop.machines[0].start()
        if silent:
            shop.machines[0].order("silence")
        shop.start_daemon(ready=not silent)
        yield Box(shop, lambda seconds: jumps.write_text(str(seconds)))
        assert verify(shop.ledger).clean


def age(text: str) -> float:
    """Seconds from a time of an answer to now, as the machine has it."""
    return (datetime.now(UTC) - datetime.fromisoformat(text)).total_seconds()


def test_a_box_that_wakes_up_in_1970_takes_the_machines_time(tmp_path: Path, nursery: Nursery) -> None:
    """From the first report on; the difference is logged once, and shown."""
    with opened(tmp_path, nursery, -time.time()) as box:
        box.sell("F-1")
        closure = box.close()
        assert abs(age(closure["period_start"])) < CLOSE
        assert abs(age(closure["created_at"])) < CLOSE
        assert box.drift < -20 * 365 * 24 * HOUR
        assert len(box.shop.events("clock.drift")) == 1
        assert box.shop.get("reports").json()["count"] == 1


def test_a_clock_that_jumps_by_hours_moves_no_period(tmp_path: Path, nursery: Nursery) -> None:
    """Forward and back, by more than an hour and by less: times never go back, and stay with the machine's within the hour."""
    closures = []
    with opened(tmp_path, nursery, 0.0) as box:
        for at, off in enumerate((0.0, 5 * HOUR, -3 * HOUR, 0.5 * HOUR, -0.5 * HOUR, 0.0)):
            box.jump(off)
            box.sell(f"F-{at}")
            closures.append(box.close())
    times = [moment for closure in closures for moment in (closure["period_start"], closure["period_end"])]
    assert times == sorted(times)
    assert [closure["certs_count"] for closure in closures] == [1] * len(closures)
    assert all(closure["period_end"] == closure["created_at"] for closure in closures)
    assert all(abs(age(moment)) < HOUR + CLOSE for moment in times)
    assert max(abs(age(moment)) for moment in times[:6]) < CLOSE


def test_a_drift_of_more_than_two_minutes_is_logged_and_shown(tmp_path: Path, nursery: Nursery) -> None:
    """The box's own clock still counts: it is less than an hour off."""
    off = 180.0
    with opened(tmp_path, nursery, off) as box:
        (event,) = box.shop.events("clock.drift")
        assert abs(event["seconds"] - off) <= 2
        assert abs(box.drift - off) <= 2
        box.sell("F-1")
        assert abs(age(box.close()["created_at"]) + off) < CLOSE
