"""Charts as SVG from the server: no script, readable without colour; each bar has a text, and its value on hover."""

from collections.abc import Sequence

from markupsafe import Markup, escape

from common.language import Language
from common.numbers import SPACE, amount, compact

WIDTH, HEIGHT, TALL, FOOT, SIDE, HEAD = 720, 210, 400, 24, 92, 18
STEPS = (1, 2, 2.5, 5, 10)
"""Steps of the axis, times a power of ten."""
LINES = 4


def money_cell(value: int) -> Markup:
    """Money in a table or as a figure: its unit goes to the next line, or away, if there is little room."""
    return Markup(f'{amount(value)} <span class="unit">F{SPACE}CFA</span>')  # noqa: S704  a number


def bars(
    values: Sequence[tuple[str, int, str]],
    label: str,
    before: Sequence[int] = (),
    testid: str = "",
    *,
    language: Language,
    tall: bool = False,
) -> Markup:
    """One bar for each (name, value, words); `label` describes the chart to a screen reader. An empty name is not
    printed; values below 0 have no bar. `before` is a line of earlier values. `tall` is for a column beside a list."""
    high = TALL if tall else HEIGHT
    step = _step(max((*before, *(value for _, value, _ in values)), default=0))
    top = step * LINES
    wide = (WIDTH - SIDE) / max(len(values), 1)
    parts = [_axis(step, line, high, language) for line in range(LINES + 1)]
    for index, (name, value, words) in enumerate(values):
        left, height = SIDE + index * wide, _height(value, top, high)
        middle, y = left + wide / 2, high - FOOT - height
        parts.append(
            f'<g><title>{escape(words)}</title><rect class="bar" x="{left + 1:.1f}" y="{y}" width="{max(wide - 2, 1):.1f}" '
            f'height="{height}" rx="2"/>{_hit(left, wide, high)}<text class="value" x="{min(max(middle, SIDE + 60), WIDTH - 60):.1f}" y="{y - 5}">{amount(value)}</text>'
            + (f'<text class="under" x="{middle:.1f}" y="{high - 6}">{escape(name)}</text></g>' if name else "</g>")
        )
    if before:
        points = " ".join(
            f"{SIDE + (at + 0.5) * wide:.1f},{high - FOOT - _height(value, top, high)}"
            for at, value in enumerate(before)
        )
        parts.append(f'<polyline class="before" points="{points}"/>')
    named = f' data-testid="{escape(testid)}"' if testid else ""
    head = f'<svg class="chart{" tall" * tall}" role="img" viewBox="0 0 {WIDTH} {high}" aria-label="{escape(label)}"{named}>'
    return Markup(f"{head}{''.join(parts)}</svg>")  # noqa: S704  # every value in it is escaped or a number


def _height(value: int, top: int, high: int) -> int:
    return max(0, value) * (high - FOOT - HEAD) // top


def _hit(left: float, wide: float, high: int) -> str:
    """Makes the whole column sensitive to pointer and touch, however low its bar."""
    return f'<path class="hit" d="M{left:.1f} {HEAD}h{wide:.1f}V{high - FOOT}h-{wide:.1f}z"/>'


def _axis(step: int, line: int, high: int, language: Language) -> str:
    y = high - FOOT - line * (high - FOOT - HEAD) // LINES
    return (
        f'<line class="base" x1="{SIDE}" x2="{WIDTH}" y1="{y}" y2="{y}"/>'
        f'<text class="axis" x="{SIDE - 6}" y="{y + 4}">{compact(step * line, language)}</text>'
    )


def _step(most: int) -> int:
    """The smallest round number of which `LINES` are at least `most`."""
    power = 1
    while True:
        for step in STEPS:
            if step * power * LINES >= most and step * power == int(step * power):
                return int(step * power)
        power *= 10
