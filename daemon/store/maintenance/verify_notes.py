"""Notes of `mcfd verify`, which are no damage: records that a disk has lost and a restore has named; duplicates of 0.1.0,
which stay (two spellings of one number, a code entered for two invoices); and numbers missing in a till's own series
(SFE 2.18: without gaps), if a series can be recognised: many numbers with the same prefix and nearly all digits in use.
A missing number may be a sale that was given up."""

from __future__ import annotations

import re
import sqlite3
from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from common.language import Text
from daemon.store.sqlite.file import load, read_as
from daemon.store.tables.book.books import all_books
from daemon.store.tables.book.entries import losses

_SQL = load(__name__)
LEAST: Final = 20
"""Numbers of a series."""
MAX_MISSING: Final = 10
"""One of so many."""
MAX_RANGES: Final = 5
_NUMBER: Final = re.compile(r"(.*?)([0-9]{1,15})", re.ASCII | re.DOTALL)


_TWINS: Final = {
    "numbers": Text(
        "{nim} ({mode}): record {seq} has the number {number!r}, which is equal to {same!r} of record {earlier} (written by 0.1.0)"
    ),
    "codes": Text(
        "{nim} ({mode}): record {seq} ({number!r}) has the code of record {earlier} ({same!r}) (written by 0.1.0): ask for a correction"
    ),
}


def equal_numbers(connection: sqlite3.Connection) -> Iterator[str]:
    """A sentence for each; they are no damage."""
    for query, sentence in _TWINS.items():
        yield from read_as(sentence, connection.execute(_SQL[query]))


def series_gaps(connection: sqlite3.Connection) -> Iterator[str]:
    """A sentence for each series of a live book with gaps."""
    for book in all_books(connection):
        if book.mode != "live":
            continue
        series: defaultdict[tuple[str, int], array[int]] = defaultdict(lambda: array("q"))
        for number, year in connection.execute(_SQL["series_numbers"], (book.id,)):
            if (found := _NUMBER.fullmatch(number)) is not None:
                series[found[1], year].append(int(found[2]))
        for (name, _), numbers in sorted(series.items()):
            gaps = gaps_of(numbers)
            if gaps:
                ranges = [str(first) if first == last else f"{first}-{last}" for first, last in gaps[:MAX_RANGES]]
                yield Text(
                    "{nim}: numbers are missing in the series {series!r}: {missing}",
                    nim=book.nim,
                    series=name,
                    missing=", ".join(ranges) + (", …" if len(gaps) > MAX_RANGES else ""),
                )


def lost_records(connection: sqlite3.Connection) -> Iterator[str]:
    """A sentence for each group."""
    for book in all_books(connection):
        for entry in losses(connection, book).values():
            yield Text(
                "{nim} ({mode}): a disk has lost the records {first} to {last}, which are missing since a restore; the totals count them",
                nim=book.nim,
                mode=book.mode,
                first=entry.first_seq,
                last=entry.last_seq,
            )


def gaps_of(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """First and last of each; none where the numbers are no series."""
    there = sorted(set(numbers))
    if len(there) < LEAST or (there[-1] - there[0] + 1 - len(there)) * MAX_MISSING > len(there):
        return []
    return [(before + 1, after - 1) for before, after in pairwise(there) if after > before + 1]
