"""File systems that fill up or are read-only, for tests that run as root in a place where mounting is allowed."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Path]:
    """`folder` is a file system of its own."""
    folder.mkdir()
    _mount("-t", "tmpfs", "-o", f"size={megabytes}m", "mcfd-test", str(folder))
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@contextmanager
def read_only(disk: Path) -> Iterator[None]:
    """The file system at `disk`, which no process has open for writing, as the kernel leaves it after errors."""
    _mount("-o", "remount,ro", str(disk))
    try:
        yield
    finally:
        _mount("-o", "remount,rw", str(disk))


def fill(folder: Path, leave: int = 0) -> Path:
    """A file that takes all but `leave` bytes of that file system."""
    filler = folder / "filler"
    disk = os.statvfs(folder)
    left = disk.f_bavail * disk.f_frsize - leave
    block = b"\0" * 65_536
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while left > 0:
            left -= file.write(block[: min(left, len(block))])
    return filler


def _mount(*arguments: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small file system")
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"no file system of our own can be mounted here: {done.stderr.strip()}")
