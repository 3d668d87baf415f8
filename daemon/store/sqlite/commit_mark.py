"""Which commit was the last whose callers were told, in a small file beside the ledger: should the ledger then hold fewer, acknowledged
writes are gone (a bit of the WAL that flipped ends it there for SQLite, without a word).

Written after each commit and never synced: it costs no wait. The commit was durable before it, so a mark is never ahead of an honest
disk; after a power cut it may be behind, and then less is noticed. `name` is of the ledger and its epoch: a restored one has another."""

from __future__ import annotations

import contextlib
import os
import zlib
from pathlib import Path
from typing import NamedTuple

from daemon.store.sqlite.disk_failure import file_failed

SUFFIX = ".commits"


class MarkRow(NamedTuple):
    name: str
    number: int


def mark_path(ledger: Path) -> Path:
    return ledger.with_name(ledger.name + SUFFIX)


def read_mark(ledger: Path) -> MarkRow | None:
    """None when there is none, or none that can be read."""
    try:
        text, _, check = mark_path(ledger).read_bytes().rstrip(b"\n").rpartition(b" ")
        name, _, number = text.decode("ascii").rpartition(" ")
        return MarkRow(name, int(number)) if int(check, 16) == zlib.crc32(text) else None
    except (OSError, ValueError):
        return None


class CommitMark:
    """The mark of one open ledger. A full disk is noticed by the ledger's own writes."""

    def __init__(self, ledger: Path, name: str) -> None:
        self._name = name
        self._descriptor = -1
        with contextlib.suppress(OSError):
            self._descriptor = os.open(mark_path(ledger), os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o640)

    def write(self, number: int) -> None:
        """Always as long, in one write of less than a sector."""
        if self._descriptor >= 0:
            text = f"{self._name} {number:020}".encode("ascii")
            try:
                os.pwrite(self._descriptor, b"%b %08x\n" % (text, zlib.crc32(text)), 0)
            except OSError as error:
                file_failed(error, is_sync=False)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
