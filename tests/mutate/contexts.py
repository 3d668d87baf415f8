"""A plugin of pytest: what is measured from a test's setup to its teardown counts as touched by that test, also in tasks and threads."""

from __future__ import annotations

from collections.abc import Generator

import pytest
from coverage import Coverage


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    measuring = Coverage.current()
    if measuring is not None:
        measuring.switch_context(item.nodeid.partition("[")[0])
    return (yield)
