"""What was renamed or copied beside SQLite is on the disk before anybody relies on it."""

from __future__ import annotations

import os
from pathlib import Path


def sync_path(path: Path) -> None:
    """A file, or the names in a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def real_path(ledger: Path) -> Path:
    """Where the ledger itself is, whatever symbolic links lead there: what stands beside it is found by that."""
    return Path(os.path.realpath(ledger))
