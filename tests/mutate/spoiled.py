"""One mistake in place, in this process: in the functions that are there already, and in modules that are imported later.

As a plugin of pytest (`-p mutate.spoiled`) it spoils by the import alone, what `MCFD_MISTAKE` says.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.machinery import SourceFileLoader
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FunctionType

from mutate.mistakes import Mistake
from support.nursery import Nursery

TREE = Path(__file__).parents[2]
TOLD = "MCFD_MISTAKE"
Alive = Mapping[str, Sequence[FunctionType]]


def told(mistake: Mistake | None) -> dict[str, str]:
    """For the environment of a process that imports this module with `spoil_imports(asked())`."""
    return {TOLD: json.dumps(asdict(mistake))} if mistake else {}


def asked() -> Mistake | None:
    text = os.environ.get(TOLD)
    return Mistake(**json.loads(text)) if text else None


def spoil_imports(mistake: Mistake) -> None:
    """Whoever imports its module from now on has it with the mistake."""
    path = str(TREE / mistake.file)
    whole = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
        if self.path != path:
            return whole(self, fullname)
        return compile(mistake.applied(Path(path).read_bytes()), path, "exec", dont_inherit=True)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign]


def alive() -> Alive:
    """The functions of this tree that this process has, by file; also what pytest's collection has frozen, where the collector does not look."""
    frozen = gc.get_freeze_count()
    gc.unfreeze()
    found: defaultdict[str, list[FunctionType]] = defaultdict(list)
    for each in gc.get_objects():
        if type(each) is FunctionType and each.__code__.co_filename.startswith(str(TREE)):
            found[each.__code__.co_filename].append(each)
    if frozen:
        gc.freeze()
    return found


def spoil(mistake: Mistake, functions: Alive) -> bool:
    """Whether it could be put into the functions: not where it stands outside of them, which was over when the module was imported, nor where
    the module is here and its function is not."""
    path = str(TREE / mistake.file)
    source = Path(path).read_bytes()
    good, bad = (compile(text, path, "exec", dont_inherit=True) for text in (source, mistake.applied(source)))
    pairs = _paired(good, bad)
    if pairs is None:
        return False
    hit = [(each, pairs[each.__code__]) for each in functions.get(path, ()) if each.__code__ in pairs]
    if any(len(each.__code__.co_freevars) != len(code.co_freevars) for each, code in hit):
        return False
    for each, code in hit:
        each.__code__ = code
    spoil_imports(mistake)
    return bool(hit) or path not in {getattr(module, "__file__", None) for module in list(sys.modules.values())}


def _paired(good: CodeType, bad: CodeType) -> dict[CodeType, CodeType] | None:
    """Each function's code that differs, with what it becomes; None where classes or the module itself differ, or what belongs together
    cannot be told."""
    before, after = _by_place(good), _by_place(bad)
    pairs: dict[CodeType, CodeType] = {}
    for place, codes in before.items():
        others = after.get(place, [])
        if len(codes) != len(others):
            return None
        for code, other in zip(codes, others, strict=True):
            if code.co_flags & CO_OPTIMIZED:
                if code != other:
                    pairs[code] = other
            elif _bare(code) != _bare(other):
                return None
    return pairs


def _by_place(code: CodeType) -> dict[tuple[str, int], list[CodeType]]:
    found: defaultdict[tuple[str, int], list[CodeType]] = defaultdict(list)
    for each in _all(code):
        found[each.co_qualname, each.co_firstlineno].append(each)
    return found


def _all(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _all(each)


def _bare(code: CodeType) -> tuple[bytes, tuple[str, ...], list[str]]:
    """Without the functions in it."""
    return code.co_code, code.co_names, [repr(each) for each in code.co_consts if not isinstance(each, CodeType)]


def pytest_load_initial_conftests() -> None:
    """Before the first file of the tests imports anything of ours."""
    mistake = asked()
    assert mistake
    spoil_imports(mistake)
    Nursery.command = (sys.executable, "-m", "mutate.daemons")
