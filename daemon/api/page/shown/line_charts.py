"""What moved on a line in the last day, and how long a certification took there: ten minutes a bar."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from typing import Final

from daemon.api.box import LineSlot
from daemon.api.page.visit import Visit
from daemon.paper.qr import draw_qr

SLOT_MS: Final = 600_000
DAY_MS: Final = 86_400_000
EDGE: Final = 4
NAMED_HOURS: Final = 3
"""Between two names under the bars."""

Bar = tuple[str, int, str]
"""As `common.web.charts.bars` takes it."""


async def line_charts(visit: Visit, slots: Sequence[LineSlot]) -> list[tuple[str, list[Bar]]]:
    """Pairs of heading and bars; none where there is no line. Oldest first. Tills are served between two of them."""
    if not slots:
        return []
    known = {slot.at: slot for slot in slots}
    times = range(slots[-1].at - DAY_MS + SLOT_MS, slots[-1].at + SLOT_MS, SLOT_MS)
    quiet = [
        known.get(at) or LineSlot(at=at, exchanges=0, retries=0, garbage=0, certified=0, line_ms=0) for at in times
    ]
    moved = _inside([_moved(visit, slot) for slot in quiet])
    await asyncio.sleep(0)
    timed = _inside([_timed(visit, slot) for slot in quiet])
    return [
        (visit.say("Exchanges, ten minutes a bar"), moved),
        (visit.say("Time on the line of a certification, ms"), timed),
    ]


def _inside(bars: list[Bar]) -> list[Bar]:
    """A name under the first or last bars would stand half outside."""
    edge = {*range(EDGE), *range(len(bars) - EDGE, len(bars))}
    return [("" if at in edge else name, value, words) for at, (name, value, words) in enumerate(bars)]


def _moved(visit: Visit, slot: LineSlot) -> Bar:
    words = visit.say(
        "{at}: {exchanges} exchanges, {retries} tried again, {garbage} bytes of noise",
        at=visit.clock(slot.at),
        exchanges=slot.exchanges,
        retries=slot.retries,
        garbage=slot.garbage,
    )
    return _name(visit, slot.at), slot.exchanges, words


def _timed(visit: Visit, slot: LineSlot) -> Bar:
    words = visit.say(
        "{at}: {count} certified, {took} ms each", at=visit.clock(slot.at), count=slot.certified, took=slot.line_ms
    )
    return _name(visit, slot.at), slot.line_ms, words


def _name(visit: Visit, at: int) -> str:
    hour, minute = visit.clock(at).split(":")
    return f"{int(hour)} h" if minute == "00" and int(hour) % NAMED_HOURS == 0 else ""


async def qr_picture(text: str) -> str:
    """A `data:` address for an image; drawn in a thread, so that no till waits."""
    return f"data:image/svg+xml;base64,{base64.b64encode(await asyncio.to_thread(draw_qr, text)).decode()}"
