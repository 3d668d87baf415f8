"""Charts as SVG made on the server: no script, readable without colour, each bar with its words."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape

from common.numbers import SPACE, amount

WIDTH, HEIGHT, FOOT = 720, 160, 18


def money_cell(value: int) -> Markup:
    """Money in a table; where there is little room, the style leaves its unit out."""
    return Markup(f'{amount(value)}<span class="unit">{SPACE}F{SPACE}CFA</span>')  # noqa: S704  a number


def bars(values: Sequence[tuple[str, int, str]], label: str) -> Markup:
    """One bar for each (name, value, words); `label` says what the chart is to who cannot see it. A bar without a name has none under it;
    nothing below 0 has a bar."""
    most = max((value for _, value, _ in values), default=0) or 1
    step = WIDTH / max(len(values), 1)
    parts = []
    for index, (name, value, words) in enumerate(values):
        tall = max(0, value) * (HEIGHT - FOOT) // most
        left = index * step
        parts.append(
            f'<g><title>{escape(words)}</title><rect class="bar" x="{left + 1:.1f}" y="{HEIGHT - FOOT - tall}" '
            f'width="{max(step - 2, 1):.1f}" height="{tall}"/>'
            + (f'<text x="{left + step / 2:.1f}" y="{HEIGHT - 5}">{escape(name)}</text></g>' if name else "</g>")
        )
    parts.append(f'<line class="base" x2="{WIDTH}" y1="{HEIGHT - FOOT}" y2="{HEIGHT - FOOT}"/>')
    inner = "".join(parts)
    head = f'<svg class="chart" role="img" viewBox="0 0 {WIDTH} {HEIGHT}" aria-label="{escape(label)}">'
    return Markup(f"{head}{inner}</svg>")  # noqa: S704  # every value in it is escaped or a number
