"""Which machines are in the metrics."""

import pytest
from support.api import NIM, Serve


@pytest.mark.parametrize(
    ("disabled", "modes"),
    [(frozenset(), {"live", "test"}), (frozenset({NIM}), {"test"}), (frozenset({"EL09999999-1"}), {"live", "test"})],
)
async def test_a_machine_switched_off_is_none_that_fails(
    serve: Serve, disabled: frozenset[str], modes: set[str]
) -> None:
    """It is left out; its sandbox, which goes on, and the other machines are there."""
    served = await serve(disabled=disabled)
    text = (await served.client.get("/metrics")).text
    assert {mode for mode in ("live", "test") if f'mode="{mode}"' in text} == modes
