"""A sale that is not certified yet, at headquarters: a finding from 40 hours on; the law leaves 48 (arrêté 2025-0049, article 6 g)."""

import pytest

from common.wire.presence import Presence
from daemon.core.clock import HOUR, millis_text
from headquarters.core.checks import facts_of

NOW = 1_765_000_000_000


@pytest.mark.parametrize(("age", "hours"), [(0, None), (24, None), (39.99, None), (40, 40), (47.5, 47)])
def test_a_sale_that_waits_for_forty_hours_is_a_finding(age: float, hours: int | None) -> None:
    """By the box's own clock, whatever headquarters' says."""
    presence = Presence(
        type="bf.mcfd.presence.v1",
        nim="EL02000015-1",
        at=millis_text(NOW),
        ledger="abd1",
        boot="5eed0001",
        version="1.0.0",
        key="k",
        sold=millis_text(NOW - round(age * HOUR)) if age else "",
    )
    facts = list(facts_of(presence, at=NOW, now=NOW + 60_000, newest=""))
    assert [(fact.kind, fact.facts) for fact in facts] == ([] if hours is None else [("deferred", {"hours": hours})])
