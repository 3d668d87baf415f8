"""Libraries that ours load when they are there, and that a daemon has no use for: 12 MB of a box's memory, and a third of its start."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without(*names: str) -> Iterator[None]:
    """What is imported meanwhile finds none of them, as if they were not installed; one that is loaded already stays."""
    hidden = [name for name in names if name not in sys.modules]
    for name in hidden:
        sys.modules[name] = None  # type: ignore[assignment]  # what the import system takes for "is not there"
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]
