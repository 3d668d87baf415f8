"""The event loop of a service."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from contextlib import suppress
from typing import Any, TypeVar

import msgspec
import uvloop

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Runs a service until `main` ends and returns its result. Call it before there are threads."""
    complete_structs()
    return uvloop.run(main)


def complete_structs() -> None:
    """Makes msgspec read the annotations of every struct that is imported. It does that at the first decoding, unlocked:
    two threads that decode one struct for the first time at the same moment crash the process (msgspec 0.22)."""
    for struct in dict.fromkeys(_subclasses(msgspec.Struct)):
        with suppress(TypeError, NameError):  # such a struct cannot be decoded
            msgspec.json.Decoder(struct)


def _subclasses(kind: type[object]) -> Iterator[type[object]]:
    for each in kind.__subclasses__():
        yield each
        yield from _subclasses(each)
