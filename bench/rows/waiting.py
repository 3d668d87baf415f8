"""What 10 000 sales that wait for their certification cost the tills and the start."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing

from bench.figures import Row, median, milliseconds, quantile
from bench.rows.sales import SalesAtTill
from bench.shop.invoices import bodies
from bench.shop.ledger import add_waiting
from bench.shop.shops import PACED, Bench, folder, running, seconds_to_ready
from daemon.store.sqlite.connection import open_to_read

COUNT = 10_000
SALES = 300
RUSH = 8
"""Sales one after the other; then nobody comes for a moment, in which one that waits may be certified."""
PAUSE = (1.0, 1.6)
STARTS = 5


def waiting() -> Iterator[Row]:
    """The same shop twice, by turns: one whose queue is worked off beside its till, and one without."""
    with folder() as path, ExitStack() as stack:
        ledger = path / "waiting.sqlite3"
        add_waiting(ledger, COUNT)
        loaded = stack.enter_context(running(1, *PACED, ledger=ledger))
        idle = stack.enter_context(running(1, *PACED))
        yield _slower(loaded, idle)
        starts = {bench: [seconds_to_ready(bench.shop) for _ in range(STARTS)] for bench in (loaded, idle)}
    found, none = median(starts[loaded]), median(starts[idle])
    yield Row("start-waiting", found - none, f"{found:.2f} s / {none:.2f} s, median of {STARTS}")


def _slower(loaded: Bench, idle: Bench) -> Row:
    dice = random.Random("waiting")
    pair = [SalesAtTill(bench, bodies(1, series="Q", walk_in=True)) for bench in (loaded, idle)]
    times: list[list[float]] = [[], []]
    before = _left(loaded)
    for turn in range(SALES):
        if turn % RUSH == 0:
            time.sleep(dice.uniform(*PAUSE))
        for side in (0, 1) if turn % 2 else (1, 0):
            times[side].append(next(pair[side]))
    worked_off = before - _left(loaded)
    if not worked_off:
        raise RuntimeError("nothing that waited was certified meanwhile")
    for sales in pair:
        sales.close()
    ours, other = (quantile(each, 0.99) for each in times)
    note = f"{milliseconds(ours)} / {milliseconds(other)}, {SALES} of each, {worked_off} worked off"
    return Row("waiting", ours / other, note, {"seconds": times})


def _left(bench: Bench) -> int:
    """How many wait."""
    with closing(open_to_read(bench.shop.ledger)) as connection:
        return int(
            connection.execute("SELECT count(*) FROM deferred WHERE state IN ('waiting', 'begun')").fetchone()[0]
        )
