"""A deliberate mistake put into the running functions, and taken out again."""

import importlib
import inspect
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple


class Mistake(NamedTuple):
    """`old` stands exactly once in the module; `seed` found it when it was last searched for. `more`: further places, each with its module, `old` and
    `new`, where a rule is kept twice."""

    seed: int
    name: str
    module: str
    old: str
    new: str
    more: tuple[tuple[str, str, str], ...] = ()


@contextmanager
def applied(mistake: Mistake) -> Iterator[None]:
    """While it lasts, the daemon makes it."""
    places = ((mistake.module, mistake.old, mistake.new), *mistake.more)
    with ExitStack() as stack:
        for name in dict.fromkeys(module for module, _, _ in places):
            stack.enter_context(
                _apply_in(mistake.name, name, [(old, new) for module, old, new in places if module == name])
            )
        yield


@contextmanager
def _apply_in(mistake: str, name: str, places: list[tuple[str, str]]) -> Iterator[None]:
    module = importlib.import_module(name)
    source = Path(inspect.getfile(module)).read_text()
    for old, new in places:
        assert source.count(old) == 1, f"{mistake}: its place is not in {name} any more"
        source = source.replace(old, new)
    wrong = ModuleType(module.__name__)
    wrong.__dict__.update({name: value for name, value in vars(module).items() if name.startswith("__")})
    code = compile(source, inspect.getfile(module), "exec", dont_inherit=True)
    exec(code, wrong.__dict__)  # noqa: S102  our own source, with the mistake in it
    swapped = list(_pairs(module, wrong, module.__name__))
    before = [function.__code__ for function, _ in swapped]
    for function, other in swapped:
        function.__code__ = other.__code__
    try:
        yield
    finally:
        for (function, _), code_before in zip(swapped, before, strict=True):
            function.__code__ = code_before


def _pairs(right: Any, wrong: Any, module: str) -> Iterator[tuple[FunctionType, FunctionType]]:
    """Each function of a module, with the one that stands in its place."""
    for name, value in vars(right).items():
        other = vars(wrong).get(name)
        if isinstance(value, type) and value.__module__ == module and isinstance(other, type):
            yield from _pairs(value, other, module)
            continue
        ours, theirs = _function(value), _function(other)
        if ours is None or theirs is None or ours.__module__ != module:
            continue
        if ours.__code__.co_freevars == theirs.__code__.co_freevars:
            yield ours, theirs


def _function(value: Any) -> FunctionType | None:
    value = getattr(value, "__wrapped__", value)
    value = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    return value if isinstance(value, FunctionType) else None
