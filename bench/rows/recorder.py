"""Row 15: the same shop twice, one that records what moves on its line and one that does not; turn and turn about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

from bench.figures import Row
from bench.rows.pairs import compare
from bench.shop.invoices import bodies
from bench.shop.shops import PACED, Bench, running
from bench.shop.till import Till

SIZES = (("15a", 1, 80), ("15b", 10, 25), ("15c", 100, 4))
RECORDING: tuple[dict[str, int], ...] = ({}, {"recording_mb": 0})
"""As it is shipped, and switched off."""


def recorder() -> Iterator[Row]:
    with ExitStack() as stack:
        shops = [stack.enter_context(running(1, *PACED, per_machine=settings)) for settings in RECORDING]
        for row, items, count in SIZES:
            yield compare(row, [_certifying(shop, items) for shop in shops], ("recorded", "unrecorded"), count)
        for shop, recorded in zip(shops, (True, False), strict=True):
            if any((shop.shop.folder / "recordings").rglob("*")) is not recorded:
                raise RuntimeError("what was to be recorded was not, or the other way round")


def _certifying(bench: Bench, items: int) -> Iterator[float]:
    """Seconds of one certification after the other, each made when it is asked for."""
    till = Till(bench.till())
    for request in bodies(items, series=f"R{items}"):
        yield till.post(request)
