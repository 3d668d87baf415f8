"""A real daemon over a hostile line, several tills at once, SIGKILL at a random moment or commit, again and again.

Within the suite it is one small round; `make torture MINUTES=60` plays rounds until the time is over or one goes wrong, and `make torture MINUTES=0
SEED=n` round n again. What two tills do at the same moment is decided by the real time, so a round that failed may need a few more tries.
"""

import os
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path

import httpx
import pytest
from support.crash.lane import QUICK_LINE, AtCommit, Lane, insist
from support.hostile import FAMILY, slow_down

MINUTES = float(os.environ.get("MCFD_TORTURE", "0"))
FIRST = int(os.environ.get("MCFD_SEED") or random.SystemRandom().randrange(10**6))
KILLS = 10 if "MCFD_TORTURE" in os.environ else 3
STRETCH = 3.0


@pytest.mark.long
@pytest.mark.timeout(60 * MINUTES + 900)
def test_rounds_of_kills(tmp_path: Path) -> None:
    """Nothing is lost or doubled, and the closures add up."""
    ends_at = time.monotonic() + 60 * MINUTES
    for seed in count(FIRST):
        print(f"seed {seed}", flush=True)  # noqa: T201  shown when the test fails
        kill_round(tmp_path / f"lane-{seed}", seed)
        if time.monotonic() >= ends_at:
            break


def kill_round(folder: Path, seed: int) -> None:
    draw = random.Random(seed)
    lines = draw.sample(sorted(FAMILY), draw.randint(0, 3))
    plan = ",".join(slow_down(FAMILY[line], STRETCH) for line in lines)
    with Lane(folder, per_machine=QUICK_LINE) as lane:
        lane.machine.order("faults", spec=plan, seed=seed)
        for _ in range(KILLS):
            _sell_and_die(lane, draw)
        lane.machine.order("faults", spec="")
        insist(partial(lane.shop.close_period, key="the last Z"), 201)
        lane.check()
        history = lane.shop.get("reports").json()["reports"]
        assert sum(z["certs_count"] for z in history) == len(lane.certified)


def _sell_and_die(lane: Lane, draw: random.Random) -> None:
    sales = [
        lane.next_invoice(*(draw.randint(1, 9999) for _ in range(draw.randint(1, 4))))
        for _ in range(draw.randint(1, 4))
    ]
    calls: list[Callable[[], httpx.Response]] = [partial(lane.shop.certify, body, key=key) for body, key in sales]
    closes = partial(lane.shop.close_period, key=f"Z after {sales[-1][1]}") if draw.random() < 0.25 else None
    if closes:
        calls.insert(draw.randrange(len(calls) + 1), closes)
    _die(lane, draw, partial(_all_at_once, calls))
    lane.ensure()
    for ask in calls:
        insist(ask, 201 if ask is closes else 200)
    lane.check()


def _die(lane: Lane, draw: random.Random, work: Callable[[], None]) -> None:
    if draw.random() < 0.5:
        lane.die_at(AtCommit(draw.randint(1, 6), draw.choice(("before", "after"))), work)
        return
    with lane.doing(work):
        time.sleep(draw.expovariate(20))
        lane.shop.kill_daemon()
    if draw.random() < 0.2:
        lane.machine.order("reboot", seconds=draw.uniform(0, 0.2))


def _all_at_once(query: list[Callable[[], httpx.Response]]) -> None:
    with ThreadPoolExecutor(len(query)) as threads:
        for asking in [threads.submit(ask) for ask in query]:
            with suppress(httpx.HTTPError):
                asking.result()
