# ruff: noqa: INP001 -- a script, run by the package's postinst and by Debian's hook for a change of Python
"""Byte code for every module below a directory: a start then takes half a second less, and the daemon cannot write any.

It is used without a look at its source, so it has to be whole: all of it is written beside its place, brought to the
disk, and put in place only then. A power cut leaves either none or the finished one. A module that this Python cannot
compile has none, and is told when it is imported.
"""

import contextlib
import importlib.util
import os
import py_compile
import sys
from pathlib import Path


def main(folder: Path) -> None:
    made: list[tuple[str, str]] = []
    for source in sorted(folder.rglob("*.py")):
        target = importlib.util.cache_from_source(str(source))
        with contextlib.suppress(py_compile.PyCompileError):
            mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
            py_compile.compile(str(source), f"{target}.new", doraise=True, quiet=2, invalidation_mode=mode)
            made.append((f"{target}.new", target))
    os.sync()
    for new, target in made:
        os.replace(new, target)  # noqa: PTH105  # thousands of them, on a small box


if __name__ == "__main__":
    main(Path(sys.argv[1]))
