"""The end of a link to a shared invoice."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from daemon.api.page.rendering import ShareEnded
from daemon.api.page.screens import account
from daemon.core.clock import DAY

ENDS = 1_800_000_000_000


@pytest.mark.parametrize(
    ("now", "reached"), [(ENDS, True), (ENDS + 1, False), (ENDS - 2 * DAY, True), (ENDS - 2 * DAY - 1, False)]
)
async def test_a_link_ends_after_its_day(now: int, reached: bool) -> None:
    """To the millisecond, also one made by a clock that was ahead; until then it leads on to its machine."""
    calls: list[bool] = []

    def machines() -> list[Any]:
        calls.append(True)
        return []

    result = f"EL02000015-1~CODE~1~{ENDS}"
    deps = SimpleNamespace(clock=lambda: now, workers=SimpleNamespace(all=machines))
    page = cast("Any", SimpleNamespace(share_key=b"k" * 32))
    state = {"deps": deps, "page": page}
    request = SimpleNamespace(
        app=SimpleNamespace(state=state), path_params={"token": f"{result}~{account._signed(page, result)}"}
    )
    with pytest.raises(ShareEnded):
        await account._shared(cast("Any", request))
    assert bool(calls) == reached
