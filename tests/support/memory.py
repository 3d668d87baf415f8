"""A place for what need not outlive the machine: nothing that is synced there waits for a disk."""

from __future__ import annotations

import shutil
from pathlib import Path

PLACE, ENOUGH = Path("/dev/shm"), 1 << 30  # noqa: S108  each takes a folder of its own in it


def memory() -> Path | None:
    """Where folders lie in memory, if this machine has enough of it; for `dir` of tempfile."""
    return PLACE if PLACE.is_dir() and shutil.disk_usage(PLACE).free > ENOUGH else None
