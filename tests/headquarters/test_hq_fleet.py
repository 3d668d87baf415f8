"""A small fleet of the bench: 80 boxes a phase, an outage, and kills of everything while they send."""

from __future__ import annotations

import msgspec
import pytest
from support.hq.postgresql import DEBIAN, binaries

from bench.fleet.plan import Plan, Run, run
from bench.fleet.report import PHASES, picture, table


async def test_small_fleet(tmp_path):
    """Every closure once, none lost, and the findings exactly what was left out; the page's table and picture are made of it."""
    if binaries() is None:
        pytest.skip(f"needs Debian's package {DEBIAN}")
    quick = {"servers": 1, "regions": 1, "kills": 3, "presences": 20, "idle": 0.1, "again_after": 2.0, "lasting": False}
    plan = Plan(boxes=80, days=6, permille=20, **quick)
    result = await run(plan, tmp_path)
    assert result.wrong == []
    assert result.kills == ["instance", "postgresql", "leader"]
    assert result.closures > 1200
    ran = Run(plan, result)
    assert msgspec.json.decode(msgspec.json.encode(ran), type=Run) == ran
    assert table((ran, ran)).count(f"| 240, 1 {result.closures % 1000:03} ") == 2
    assert all(f">{name}<" in picture(ran) for name in PHASES.values())
    assert [points[-1][1] for phase, points in result.taken.items() if phase != "drained"] == [
        result.closures - result.published - result.live,
        result.live,
    ]
