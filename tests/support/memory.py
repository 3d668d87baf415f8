"""A place for what need not outlive the machine: nothing that is synced there waits for a disk."""

import os
import shutil
import tempfile
from pathlib import Path

PLACE, ENOUGH = Path("/dev/shm"), 1 << 30  # noqa: S108  each takes a folder of its own in it
ENOUGH_FOR_ALL = 6 << 30
PREFIX = "mcfd-"


def memory(enough: int = ENOUGH) -> Path | None:
    """Where folders lie in memory, if this machine has enough of it; for `dir` of tempfile."""
    return PLACE if PLACE.is_dir() and shutil.disk_usage(PLACE).free > enough and available() > enough else None


def available() -> int:
    """Bytes of memory that processes may still take."""
    lines = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    return next(int(kib) * 1024 for name, kib, *_ in lines if name == "MemAvailable:")


class RunInMemory:
    """All temporary folders of a run of the tests, of the processes that it starts too; a disk with TMPDIR=/tmp. After a failure they stay until
    the next run."""

    def __init__(self) -> None:
        self.folder: Path | None = None
        self.is_stored = True

    def begin(self) -> None:
        """Not where somebody has said where: a caller, or the run that this process is part of."""
        if "TMPDIR" in os.environ or (place := memory(ENOUGH_FOR_ALL)) is None:
            return
        for left in place.glob(f"{PREFIX}*"):
            owner = left.name.removeprefix(PREFIX)
            if owner.isdigit() and not Path("/proc", owner).exists():
                shutil.rmtree(left, ignore_errors=True)
        self.folder = place / f"{PREFIX}{os.getpid()}"
        self.folder.mkdir(mode=0o711)
        os.environ["TMPDIR"] = tempfile.tempdir = str(self.folder)

    def end(self) -> None:
        if self.folder is not None:
            os.environ.pop("TMPDIR")
            tempfile.tempdir = None
            if not self.is_stored:
                shutil.rmtree(self.folder, ignore_errors=True)
