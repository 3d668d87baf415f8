"""The files of one line's recording: a ring of the last megabytes, in files of an eighth of that each, and one for each incident:
the minute before something odd and the minute after it."""

from __future__ import annotations

import os
from bisect import bisect_left
from pathlib import Path

SEGMENTS = 8
MODE = 0o600
PATTERN = "ring-*.rec"
_DIGITS = 8
INCIDENTS_KEPT = 50
INCIDENTS = "incident-*.rec"
BEFORE = 60_000_000
"""Microseconds."""


class RecordingRing:
    """`limit` in bytes, of all files together. OSError from every method."""

    def __init__(self, folder: Path, limit: int, header: str) -> None:
        self._folder = folder
        self._share = max(limit // SEGMENTS, 1)
        self._header = header.encode()
        self._file = -1
        self._number = 0
        self._size = 0

    def append(self, data: bytes) -> None:
        """Half-written lines are closed off by what is written next."""
        try:
            if self._file < 0:
                self._go_on()
            if self._size + len(data) > self._share and self._size > len(self._header):
                self._begin(self._number + 1)
            self._size += append_all(self._file, data)
        except OSError:
            self.close()  # the next one begins on a line of its own
            raise

    def tail(self, since: int) -> bytes:
        """The lines from that microsecond on, as far as the last two files have them."""
        content = b"".join(file.read_bytes() for file in segments(self._folder)[-2:])
        lines = [line for line in content.splitlines(keepends=True) if line[:1].isdigit() and line.endswith(b"\n")]
        return b"".join(lines[bisect_left(lines, since, key=_time_of) :])

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _go_on(self) -> None:
        """In the file that an earlier run left."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        last = max((_number(file) for file in segments(self._folder)), default=0)
        self._begin(max(last, 1))

    def _begin(self, number: int) -> None:
        self.close()
        path = self._folder / f"ring-{number:0{_DIGITS}d}.rec"
        self._file = open_to_append(path)
        self._number = number
        self._size = os.fstat(self._file).st_size
        # A new file, or one that a kill or a full disk left in the middle of a line.
        self._size += append_all(self._file, b"\n" + self._header if self._size else self._header)
        for old in segments(self._folder)[:-SEGMENTS]:
            old.unlink(missing_ok=True)


class Incident:
    """The one under way. OSError from every method."""

    def __init__(self, folder: Path, name: str, before: bytes, header: str) -> None:
        self.name = name
        self._file = open_to_append(path_of(folder, name))
        append_all(self._file, header.encode() + before)
        for old in listed(folder)[:-INCIDENTS_KEPT]:
            path_of(folder, old).unlink(missing_ok=True)

    def append(self, data: bytes) -> None:
        append_all(self._file, data)

    def end(self) -> None:
        """Durable from here on: what comes after a doubt is often a power switch."""
        os.fdatasync(self._file)
        self.close()

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def path_of(folder: Path, incident: str) -> Path:
    return folder / f"incident-{incident}.rec"


def listed(folder: Path) -> list[str]:
    """Their names, oldest first: each begins with its time."""
    return sorted(file.stem.partition("-")[2] for file in folder.glob(INCIDENTS))


def segments(folder: Path) -> list[Path]:
    """Oldest first."""
    return sorted(folder.glob(PATTERN), key=_number)


def open_to_append(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, MODE)


def append_all(file: int, data: bytes) -> int:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
    return len(data)


def _number(file: Path) -> int:
    text = file.stem.partition("-")[2]
    return int(text) if text.isdigit() else 0


def _time_of(line: bytes) -> int:
    text = line.partition(b" ")[0]
    return int(text) if text.isdigit() else 0
