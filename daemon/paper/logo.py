"""The shop's logo above a document: dots for a receipt printer."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from daemon.paper.png import WHITE, NotAPicture, Picture, read_png

PAPER_DOTS: Final = {32: 384, 42: 576, 48: 576}
"""Dots across the paper of so many columns, 8 a millimetre."""
TALLEST: Final = 240
"""Dots: 30 mm of paper."""
_THRESHOLD: Final = 128


@lru_cache(maxsize=4)
def raster(png: bytes, columns: int) -> bytes:
    """GS v 0 with the picture, two thirds of the paper wide at the most; nothing for one that cannot be read: a document is printed
    without it, and `mcfd doctor` says why."""
    try:
        picture = read_png(png)
    except NotAPicture:
        return b""
    rows = _dithered(_fitted(picture, PAPER_DOTS[columns] * 2 // 3))
    across = len(rows[0])
    return b"\x1dv0\x00" + across.to_bytes(2, "little") + len(rows).to_bytes(2, "little") + b"".join(rows)


def _fitted(picture: Picture, widest: int) -> list[list[int]]:
    """Made smaller where it has to be, each dot the mean of the pixels it stands for; never made larger."""
    width = min(picture.width, widest, max(1, TALLEST * picture.width // picture.height))
    height = max(1, min(picture.height * width // picture.width, TALLEST))
    if (width, height) == (picture.width, picture.height):
        return [list(row) for row in picture.rows]
    columns = [_share(at, width, picture.width) for at in range(width)]
    narrow = [[sum(row[a:b]) // (b - a) for a, b in columns] for row in picture.rows]
    found = []
    for at in range(height):
        first, last = _share(at, height, picture.height)
        found.append([sum(values) // (last - first) for values in zip(*narrow[first:last], strict=True)])
    return found


def _share(at: int, parts: int, whole: int) -> tuple[int, int]:
    first = at * whole // parts
    return first, max(first + 1, (at + 1) * whole // parts)


def _dithered(rows: list[list[int]]) -> list[bytes]:
    """Black dots so dense as the grey is dark (Floyd and Steinberg), eight in a byte from the left; the last byte is filled up with white."""
    width = len(rows[0])
    packed = []
    errors = [0] * (width + 2)  # in sixteenths, of the row that comes; one more at each side
    for row in rows:
        current, errors = errors, [0] * (width + 2)
        dots, carried = 0, 0
        for at, shade in enumerate(row):
            wanted = shade + (current[at + 1] + carried) // 16
            is_black = wanted < _THRESHOLD
            dots = dots << 1 | is_black
            error = wanted - (0 if is_black else WHITE)
            carried = 7 * error
            errors[at] += 3 * error
            errors[at + 1] += 5 * error
            errors[at + 2] += error
        padding = -width % 8
        packed.append((dots << padding).to_bytes((width + padding) // 8, "big"))
    return packed
