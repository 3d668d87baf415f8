# ruff: noqa: INP001 -- a script, run by each package's postinst and by Debian's hook for a change of Python
"""Byte code for every module below a directory: a start then takes half a second less, and the daemon cannot write any.

It is used without a look at its source, so it has to be whole: all of it is written beside its place, brought to the
disk, and put in place only then. A power cut leaves either none or the finished one. A module that this Python cannot
compile has none, and fails when it is imported.

At an upgrade most modules are what they were: the byte code of the version before (the second folder) is taken over where it
was made of the same source at the same place by the same Python. On a small box that is a minute less without a daemon. What
is in its place already, as when a package is configured again, stays by the same rule.
"""

import importlib.util
import marshal
import os
import sys
from pathlib import Path

UNCHECKED_HASH = (1).to_bytes(4, "little")


def main(folder: Path, before: Path | None = None) -> None:
    moves: list[tuple[str, str]] = []
    for source in sorted(folder.rglob("*.py")):
        if taken_over(source, source):
            continue
        code = (before and taken_over(source, before / source.relative_to(folder))) or compiled(source)
        if code:
            target = importlib.util.cache_from_source(str(source))
            Path(target).parent.mkdir(exist_ok=True)
            Path(f"{target}.new").write_bytes(code)
            moves.append((f"{target}.new", target))
    os.sync()
    for new, target in moves:
        os.replace(new, target)  # noqa: PTH105  # thousands of them, on a small box


def head_for(source: bytes) -> bytes:
    """The Python's magic number, the kind, and the hash of the source (PEP 552)."""
    return importlib.util.MAGIC_NUMBER + UNCHECKED_HASH + importlib.util.source_hash(source)


def compiled(source: Path) -> bytes:
    """The byte code of `source`; none where this Python cannot compile it."""
    text = source.read_bytes()
    try:
        code = compile(text, str(source), "exec", dont_inherit=True)
    except Exception:  # noqa: BLE001  # whatever it is, the import reports it
        return b""
    return head_for(text) + marshal.dumps(code)


def taken_over(source: Path, old: Path) -> bytes:
    """The byte code of `old` if it is that of `source`, else none. What follows its head names the file that it is for."""
    try:
        code = Path(importlib.util.cache_from_source(str(old))).read_bytes()
        is_same = code[:16] == head_for(source.read_bytes()) and marshal.loads(code[16:]).co_filename == str(source)  # noqa: S302  root's own file
    except (OSError, ValueError, EOFError, TypeError, AttributeError):
        return b""
    return code if is_same else b""


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
