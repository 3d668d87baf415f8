"""Two small charts as SVG, text and lines only, readable on light and dark."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 76, 170, 34, 48
NAME = 150
"""Wide at the most, of a line's."""
COLOURS = ("#0b6e4f", "#c1440e", "#2f5d9b", "#8a6d00")

Point = tuple[float, float]


@dataclass(frozen=True)
class Line:
    name: str
    points: Sequence[Point]
    dashed: bool = False


@dataclass(frozen=True)
class Axis:
    """`low` to `high`, with a mark at each of `marks`."""

    title: str
    marks: Sequence[float]
    text: Callable[[float], str]
    logarithmic: bool = False

    def share(self, value: float) -> float:
        low, high = self.marks[0], self.marks[-1]
        if self.logarithmic:
            return (math.log10(value) - math.log10(low)) / (math.log10(high) - math.log10(low))
        return (value - low) / (high - low)


def decades(values: Sequence[float]) -> list[float]:
    """Powers of ten around all of them."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return [10.0**power for power in range(low, max(high, low + 1) + 1)]


def chart(title: str, x: Axis, y: Axis, lines: Sequence[Line]) -> str:
    def place(point: Point) -> Point:
        across = LEFT + x.share(point[0]) * (WIDTH - LEFT - RIGHT)
        up = HEIGHT - BOTTOM - y.share(point[1]) * (HEIGHT - TOP - BOTTOM)
        return across, up

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        f'<text x="{LEFT}" y="20" font-size="14" font-weight="bold">{escape(title)}</text>',
        *_grid(x, y, place),
    ]
    placed = [[place(point) for point in line.points] for line in lines]
    for line, places, colour in zip(lines, placed, COLOURS, strict=False):
        parts.extend(_line(line, places, colour))
    parts.extend(_names(lines, [places[-1] for places in placed]))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _grid(x: Axis, y: Axis, place: Callable[[Point], Point]) -> list[str]:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = []
    for mark in x.marks:
        across, _ = place((mark, y.marks[0]))
        parts.append(f'<path d="M{across:.1f} {TOP}V{bottom}" stroke="#e4e4e4"/>')
        parts.append(f'<text x="{across:.1f}" y="{bottom + 16}" text-anchor="middle">{escape(x.text(mark))}</text>')
    for mark in y.marks:
        _, up = place((x.marks[0], mark))
        parts.append(f'<path d="M{LEFT} {up:.1f}H{right}" stroke="#e4e4e4"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{up + 4:.1f}" text-anchor="end">{escape(y.text(mark))}</text>')
    parts.append(f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 10}" text-anchor="middle">{escape(x.title)}</text>')
    parts.append(f'<text x="{LEFT}" y="{TOP - 2}" fill="#666" font-size="11">{escape(y.title)}</text>')
    return parts


def _line(line: Line, places: Sequence[Point], colour: str) -> Iterator[str]:
    path = "M" + "L".join(f"{across:.1f} {up:.1f}" for across, up in places)
    dash = ' stroke-dasharray="5 4"' if line.dashed else ""
    yield f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>'
    for across, up in places:
        yield f'<circle cx="{across:.1f}" cy="{up:.1f}" r="3" fill="{colour}"/>'


def _names(lines: Sequence[Line], ends: Sequence[Point]) -> Iterator[str]:
    """Each where its line ends, in front of the lines, and none on another."""
    taken: list[Point] = []
    for line, (across, up), colour in zip(lines, ends, COLOURS, strict=False):
        while any(abs(across - beside) < NAME and abs(up - above) < 14 for beside, above in taken):
            up += 14  # noqa: PLW2901  the place goes down until it is free
        taken.append((across, up))
        halo = 'stroke="#fff" stroke-width="4" paint-order="stroke"'
        yield f'<text x="{across + 8:.1f}" y="{up + 4:.1f}" fill="{colour}" {halo}>{escape(line.name)}</text>'
