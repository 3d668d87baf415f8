"""Row 13: the same shop twice, one whose headquarters answer, one whose headquarters are gone; turn and turn about."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from support.receivers.headquarters import HttpHeadquarters

from bench.figures import Row
from bench.rows.pairs import WARM_UP, compare
from bench.shop.invoices import bodies
from bench.shop.shops import PACED, Bench, folder, running
from bench.shop.till import Till

CERTIFICATIONS = 100
CLOSINGS = 80
SIDES = ("dead", "alive")
RETRY_MAX = 1.0
"""Seconds; a shop has minutes. Here the one without headquarters tries again all the time."""


def upstream() -> Iterator[Row]:
    with ExitStack() as stack:
        alive, headquarters = stack.enter_context(_shop(gone=False))
        dead, _ = stack.enter_context(_shop(gone=True))
        yield compare("13a", [_certifying(dead), _certifying(alive)], SIDES, CERTIFICATIONS)
        yield compare("13b", [_closing(dead), _closing(alive)], SIDES, CLOSINGS)
        _wait_for_all(headquarters)


@contextmanager
def _shop(*, gone: bool) -> Iterator[tuple[Bench, HttpHeadquarters]]:
    with folder() as path:
        headquarters = HttpHeadquarters(path)
        asyncio.run(headquarters.up())
        if gone:
            headquarters.kill()
        sections = {
            "kind": "https",
            "url": headquarters.url,
            "secret_file": str(headquarters.keys.file),
            "retry_max": RETRY_MAX,
        }
        try:
            with running(1, *PACED, config={"upstream": sections}) as bench:
                yield bench, headquarters
        finally:
            headquarters.kill()


def _certifying(bench: Bench) -> Iterator[float]:
    """Seconds of one certification after the other, each made when it is asked for."""
    till = Till(bench.till())
    for request in bodies(1, series="U"):
        yield till.post(request)


def _closing(bench: Bench) -> Iterator[float]:
    till = Till(bench.closing())
    while True:
        yield till.post(b"{}")


def _wait_for_all(headquarters: HttpHeadquarters) -> None:
    """The one that answers has been told of every closure: it was alive indeed."""
    deadline = time.monotonic() + 20
    while len(asyncio.run(headquarters.events())) < CLOSINGS + WARM_UP:
        if time.monotonic() > deadline:
            raise RuntimeError("headquarters have not got every closure")
        time.sleep(0.1)
