"""Trees that are made once and kept, and what only this run of the tests has."""

import atexit
import contextlib
import fcntl
import functools
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

CACHE = Path("/var/cache/mcfd-tests")
MAX_SECONDS = 800
"""For what a test of the packages waits for, a network or another run among it: less than pytest's limit, whose traceback says no reason."""


@contextlib.contextmanager
def keep(name: str, where: Path = CACHE) -> Iterator[tuple[Path, Path | None]]:
    """A folder that is made once: where it is, and where to make it if it is not there yet. One process at a time."""
    where.mkdir(parents=True, exist_ok=True)
    with (where / f"{name}.lock").open("w") as lock:
        _take(lock)
        if (where / name).is_dir():
            yield where / name, None
            return
        half = where / f"{name}.half"
        shutil.rmtree(half, ignore_errors=True)
        half.mkdir()
        yield where / name, half
        half.rename(where / name)


def _take(lock: IO[str]) -> None:
    deadline = time.monotonic() + MAX_SECONDS
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            assert time.monotonic() < deadline, f"another run has {lock.name} for {MAX_SECONDS} s: see lslocks"
            time.sleep(0.1)


@functools.cache
def scratch() -> Path:
    """One for all processes of a run of the tests; the last to end removes it."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(os.getpid())
    path = Path(tempfile.gettempdir()) / f"mcfd-package-{run[:12]}"
    path.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(path / "users", os.O_CREAT | os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    atexit.register(_leave, path, descriptor)
    return path


def _leave(path: Path, descriptor: int) -> None:
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    os.close(descriptor)
