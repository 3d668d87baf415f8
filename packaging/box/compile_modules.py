# ruff: noqa: INP001 -- a script, run by each package's postinst and by Debian's hook for a change of Python
"""Compiles every module below a directory: a start is half a second faster, and the daemon cannot write byte code
itself.

Byte code is used without a look at its source, so it must be complete: it is written beside its place, synced, and only
then renamed. A power cut leaves none or the complete one. A module that this Python cannot compile has none, and fails
when it is imported. A disk without room for all gets none: the program only starts slower.

At an upgrade most modules are unchanged: byte code of the previous version (the second folder) is reused if it is from
the same source, path and Python. On a small box the daemon is then back a minute earlier. Byte code already in place,
for example when a package is configured again, stays by the same rule."""

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
            moves.append((f"{target}.new", target))
            try:
                Path(target).parent.mkdir(exist_ok=True)
                Path(f"{target}.new").write_bytes(code)
            except OSError as error:
                for new, _ in moves:
                    Path(new).unlink(missing_ok=True)
                print(f"mcfd: no byte code: {error}", file=sys.stderr)  # noqa: T201  # dpkg's output
                return
    os.sync()
    for new, target in moves:
        os.replace(new, target)  # noqa: PTH105  # thousands of them, on a small box


def head_for(source: bytes) -> bytes:
    """Python's magic number, the kind, and the hash of the source (PEP 552)."""
    return importlib.util.MAGIC_NUMBER + UNCHECKED_HASH + importlib.util.source_hash(source)


def compiled(source: Path) -> bytes:
    """Byte code of `source`; empty if this Python cannot compile it."""
    text = source.read_bytes()
    try:
        code = compile(text, str(source), "exec", dont_inherit=True)
    except Exception:  # noqa: BLE001  # whatever it is, the import reports it
        return b""
    return head_for(text) + marshal.dumps(code)


def taken_over(source: Path, old: Path) -> bytes:
    """Byte code of `old` if it is valid for `source`, else empty. The code object has the path it is for."""
    try:
        code = Path(importlib.util.cache_from_source(str(old))).read_bytes()
        is_same = code[:16] == head_for(source.read_bytes()) and marshal.loads(code[16:]).co_filename == str(source)  # noqa: S302
    except (OSError, ValueError, EOFError, TypeError, AttributeError):
        return b""
    return code if is_same else b""


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
