"""Headquarters' application, in this process."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from headquarters.app.service import create_service


@pytest.mark.filterwarnings(
    "ignore::litestar.exceptions.LitestarDeprecationWarning"
)  # said of Litestar 3, which is not allowed in yet
def test_each_has_a_state_of_its_own():
    """The routes are drawn once in a process; what answers there is of the one that was asked."""
    first, second = (
        create_service(store, None, None, SimpleNamespace(zone=store, is_secure=False)) for store in ("first", "second")
    )
    assert [each.state["store"] for each in (first, second)] == ["first", "second"]
    assert first.asgi_router is second.asgi_router
