# ruff: noqa: INP001 -- a script, run by the package's postinst and by Debian's hook for a change of Python
"""Byte code for every module below a directory: a start then takes half a second less, and the daemon cannot write any.

It is used without a look at its source, so it has to be whole: all of it is written beside its place, brought to the
disk, and put in place only then. A power cut leaves either none or the finished one. A module that this Python cannot
compile has none, and is told when it is imported.

At an upgrade most modules are what they were: the byte code of the version before (the second folder) is taken over where it
was made of the same source at the same place by the same Python. On a small box that is a minute less without a daemon. What
is in its place already, as when a package is configured again, stays by the same rule.
"""

import contextlib
import importlib.util
import marshal
import os
import py_compile
import sys
from pathlib import Path

UNCHECKED_HASH = (1).to_bytes(4, "little")


def main(folder: Path, before: Path | None = None) -> None:
    made: list[tuple[str, str]] = []
    for source in sorted(folder.rglob("*.py")):
        if taken_over(source, source):
            continue
        target = importlib.util.cache_from_source(str(source))
        if before is not None and (kept := taken_over(source, before / source.relative_to(folder))):
            Path(target).parent.mkdir(exist_ok=True)
            Path(f"{target}.new").write_bytes(kept)
            made.append((f"{target}.new", target))
            continue
        with contextlib.suppress(py_compile.PyCompileError):
            mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
            py_compile.compile(str(source), f"{target}.new", doraise=True, quiet=2, invalidation_mode=mode)
            made.append((f"{target}.new", target))
    os.sync()
    for new, target in made:
        os.replace(new, target)  # noqa: PTH105  # thousands of them, on a small box


def taken_over(source: Path, old: Path) -> bytes:
    """The byte code of `old` if it is that of `source`, else none. Its head is the Python's magic number, the kind, and the hash
    of the source (PEP 552); what follows names the file that it is for."""
    try:
        code = Path(importlib.util.cache_from_source(str(old))).read_bytes()
        head = importlib.util.MAGIC_NUMBER + UNCHECKED_HASH + importlib.util.source_hash(source.read_bytes())
        is_same = code[:16] == head and marshal.loads(code[16:]).co_filename == str(source)  # noqa: S302  root's own file
    except (OSError, ValueError, EOFError, TypeError, AttributeError):
        return b""
    return code if is_same else b""


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
