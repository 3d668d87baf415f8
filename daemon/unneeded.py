"""Libraries that ours load when they are there, and that a daemon has no use for: in a virtual environment 6 MB of memory, and a tenth of the
start. Debian's package has PyYAML alone of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any


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


def later(*names: str) -> None:
    """What imports them from here on gets something in their stead, which loads them at the first use."""
    for name in names:
        sys.modules.setdefault(name, _Later(name))


class _Later(ModuleType):
    def __getattr__(self, name: str) -> Any:
        """Of whatever a module without content does not have; the next import finds the real one."""
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)
