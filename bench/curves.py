"""How cost grows, drawn from what the rows measured."""

from __future__ import annotations

from collections.abc import Sequence

from bench.figures import milliseconds
from bench.plots import Axis, Line, chart, decades
from bench.rows.reports import Curve


def report_latency(x: Curve, a: Curve) -> str:
    """X against certifications in the open period, A against those of the whole ledger; both logarithmic."""
    lines = [
        Line("A, summing", [(size, found.summing) for size, found in a], dashed=True),
        Line("X, summing", [(size, found.summing) for size, found in x], dashed=True),
        Line("A over everything", [(size, found.ours) for size, found in a]),
        Line("X", [(size, found.ours) for size, found in x]),
    ]
    sizes = [size for line in lines for size, _ in line.points]
    times = [took for line in lines for _, took in line.points]
    return chart(
        "A report against the number of certifications",
        Axis("certifications", decades(sizes), lambda value: f"{value:,.0f}".replace(",", " "), logarithmic=True),
        Axis("inside the process, without HTTP", decades(times), _round_time, logarithmic=True),
        lines,
    )


def machine_throughput(steps: Sequence[tuple[int, float]]) -> str:
    """Certifications a second of all machines together, beside what one machine times their number would be."""
    one = steps[0][1] / steps[0][0]
    most = steps[-1][0]
    top = -(-int(one * most * 1.1) // 50) * 50
    return chart(
        "Certifications a second, one-item invoices",
        Axis(
            "machines in one daemon, each on its own line",
            [0, *(count for count, _ in steps)],
            lambda value: f"{value:g}",
        ),
        Axis("certifications a second", [*range(0, top + 1, 50)], lambda value: f"{value:g}"),
        [
            Line("their lines", [(1, one), (most, one * most)], dashed=True),
            Line("measured", steps),
        ],
    )


def _round_time(seconds: float) -> str:
    return milliseconds(seconds).replace(".0", "")
