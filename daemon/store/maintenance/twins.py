"""What 0.1.0 wrote twice, and what stays as it is: two spellings of a number as two certifications, and a code of one entered for another."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from common.language import Text
from daemon.store.sqlite.queries import load

_SQL = load(__name__)


def twins(connection: sqlite3.Connection) -> Iterator[str]:
    """A sentence for each; they are no damage."""
    for nim, mode, seq, number, earlier, same in connection.execute(_SQL["numbers"]):
        yield Text(
            "{nim} ({mode}): record {seq} has the number {number!r}, which is equal to {same!r} of record {earlier} (written by 0.1.0)",
            nim=nim,
            mode=mode,
            seq=seq,
            number=number,
            same=same,
            earlier=earlier,
        )
    for nim, mode, seq, number, earlier, same in connection.execute(_SQL["codes"]):
        yield Text(
            "{nim} ({mode}): record {seq} ({number!r}) has the code of record {earlier} ({same!r}) (written by 0.1.0): ask for a correction",
            nim=nim,
            mode=mode,
            seq=seq,
            number=number,
            same=same,
            earlier=earlier,
        )
