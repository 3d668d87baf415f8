"""A service's event loop, and child processes that run code of this program."""

import sys
from collections.abc import Coroutine, Iterator
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def own_program(code: str) -> tuple[str, ...]:
    """The command that runs `code` with this process's interpreter and module path. The child reads neither the
    environment nor the working directory, where anybody may have put a module of the same name (-I). In the Debian
    package only `sys.path` knows where the modules are."""
    path = [each for each in sys.path if each]
    return (sys.executable, "-I", "-c", f"import sys; sys.path[:] = {path!r}; {code}")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Runs a service until `main` ends and returns its result. Call it before there are threads."""
    import uvloop  # noqa: PLC0415  # a command and a child do without

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
