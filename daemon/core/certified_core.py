"""The certified core: what decides what is certified, and what stands on paper and in reports (arrêté 2025-0047, art. 10 and 11).

A change of it wants a new homologation, so it has a version of its own and a digest over its sources, computed over the files that run.
A commit that changes it changes `CORE_VERSION` on purpose, says so in CHANGELOG.md, and writes the digest anew:

    python -m daemon.core.certified_core write      `make core`
    python -m daemon.core.certified_core check      part of `make check`
"""

import hashlib
import sys
from functools import cache
from pathlib import Path
from typing import Final

CORE_VERSION: Final = "23"
PARTS: Final = (
    "bridge",
    "common/numbers.py",
    "common/one_line.py",
    "common/wire/closure.py",
    "daemon/core",
    "daemon/paper",
    "daemon/store/tables/book",
    "daemon/usecases",
)
SUFFIXES: Final = (".py", ".sql")
ROOT: Final = Path(__file__).parents[2]
RECORD: Final = Path(__file__).with_suffix(".digest")
"""`VERSION DIGEST` of the core as it was released or committed last."""
WAITING: Final = Path("/run/mcfd-core-upgrade")
"""Written by packaging/box/upgrade: a version that waits for a person."""


def sources(root: Path = ROOT) -> list[Path]:
    """The core's files, by their paths."""
    found = (path for part in PARTS for path in ((root / part).rglob("*") if (root / part).is_dir() else [root / part]))
    return sorted(path for path in found if path.suffix in SUFFIXES and path.is_file())


@cache
def core_digest(root: Path = ROOT) -> str:
    """SHA-256 over path and bytes of each source, as 64 hexadecimal digits."""
    total = hashlib.sha256()
    for path in sources(root):
        content = path.read_bytes()
        total.update(f"{path.relative_to(root).as_posix()}\n{len(content)}\n".encode())
        total.update(content)
    return total.hexdigest()


def waiting_version(note: Path = WAITING) -> str:
    """The version that upgrade-mcfd.service did not take by itself, since its certified core is another one; empty without one."""
    try:
        return note.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def problem(recorded: str, digest: str) -> str:
    """Why the record is not of these sources; empty where it is."""
    version, _, before = recorded.strip().partition(" ")
    if (version, before) == (CORE_VERSION, digest):
        return ""
    if version == CORE_VERSION:
        return f"the certified core has changed: raise CORE_VERSION (it is {CORE_VERSION}) or, before its release, run `make core`"
    return "CORE_VERSION has changed: run `make core`"


def main() -> int:
    if sys.argv[1:] == ["write"]:
        RECORD.write_text(f"{CORE_VERSION} {core_digest()}\n")
        return 0
    found = problem(RECORD.read_text(), core_digest())
    if found:
        sys.stderr.write(f"daemon/core/certified_core.py: {found}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
