"""Optional libraries of our libraries that a daemon does not need: in a virtual environment they take 14 MB (82 instead
of 68 after 10 000 sales, `make bench`) and a tenth of the start. Debian's package has only PyYAML of them."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any


@contextmanager
def without(*names: str) -> Iterator[None]:
    """Imports meanwhile do not find these modules, as if they were not installed; loaded ones stay."""
    hidden = [name for name in names if name not in sys.modules]
    for name in hidden:
        sys.modules[name] = None  # type: ignore[assignment]  # the import system's mark for "does not exist"
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


def later(*names: str) -> None:
    """Imports from here on get a placeholder that loads the module at the first use."""
    for name in names:
        sys.modules.setdefault(name, _Later(name))


class _Later(ModuleType):
    def __getattr__(self, name: str) -> Any:
        """Called for any attribute; replaces the placeholder by the real module."""
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)
