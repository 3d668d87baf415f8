"""Incidents of one line: the minute before something odd and the minute after it, each in a file of its own."""

from __future__ import annotations

import os
from pathlib import Path

from daemon.recording.ring import append_all, open_to_append

KEPT = 50
BEFORE = 60_000_000
"""Microseconds."""
PATTERN = "incident-*.rec"


def path_of(folder: Path, incident: str) -> Path:
    return folder / f"incident-{incident}.rec"


def listed(folder: Path) -> list[str]:
    """Their names, oldest first: each begins with its time."""
    return sorted(file.stem.partition("-")[2] for file in folder.glob(PATTERN))


class Incident:
    """The one under way. OSError from every method."""

    def __init__(self, folder: Path, name: str, before: bytes, header: str) -> None:
        self.name = name
        self._file = open_to_append(path_of(folder, name))
        append_all(self._file, header.encode() + before)
        for old in listed(folder)[:-KEPT]:
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
