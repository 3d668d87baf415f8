"""Which messages of a stream are in this database: all of them in ranges, not a last number alone, so that a database that goes back to
an older copy, even under running instances, shows what it has lost.

A stream is known by its name and by when it was made: the numbers of one that was begun anew say nothing of those of the one before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
from sqlalchemy import Connection, select, update

from headquarters.store import tables
from headquarters.store.database import Part, insert_new

Ranges = list[tuple[int, int]]
"""In order, both ends included, and none beside the next."""


class StreamName(NamedTuple):
    name: str
    created: str


class Taken(NamedTuple):
    """Messages of that stream that a transaction has taken."""

    stream: str
    created: str
    numbers: Sequence[int]


class TakenMessages(Part):
    def missing(self, stream: str, created: str, floor: int, last: int) -> Ranges:
        """What of 1…`floor`, which was acknowledged, is not here. `last` is the stream's newest message: a stream that has gone back itself
        is read again as a whole."""
        with self._database.read() as connection:
            found = _read(connection, stream, created)
        if found and found[-1][1] > last:
            with self._database.write() as connection:
                _replace(connection, stream, created, found := [])
        return missing(found, floor)

    def keep(self, stream: str, created: str, first: int, last: int) -> None:
        with self._database.write() as connection:
            _write(connection, stream, created, [(first, last)])


def keep_taken(connection: Connection, taken: Taken) -> None:
    """Every instance writes this row, and its writer delays the others until the commit: the last thing of a transaction."""
    _write(connection, taken.stream, taken.created, [(number, number) for number in sorted(taken.numbers)])


def joined(ranges: Iterable[tuple[int, int]]) -> Ranges:
    found: Ranges = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return found


def missing(ranges: Ranges, floor: int) -> Ranges:
    """What of 1…`floor` is in none of them."""
    found: Ranges = []
    at = 1
    for first, last in ranges:
        if at <= min(first - 1, floor):
            found.append((at, min(first - 1, floor)))
        at = last + 1
    return [*found, (at, floor)] if at <= floor else found


def _write(connection: Connection, stream: str, created: str, more: Ranges) -> None:
    insert_new(connection, tables.taken, [{"stream": stream, "created": created, "ranges": msgspec.msgpack.encode([])}])
    ranges = _read(connection, stream, created, locked=True)
    _replace(connection, stream, created, joined([*ranges, *more]))


def _replace(connection: Connection, stream: str, created: str, ranges: Ranges) -> None:
    table = tables.taken
    one = update(table).where(table.c.stream == stream, table.c.created == created)
    connection.execute(one.values(ranges=msgspec.msgpack.encode(ranges)))


def _read(connection: Connection, stream: str, created: str, *, locked: bool = False) -> Ranges:
    table = tables.taken.c
    query = select(table.ranges).where(table.stream == stream, table.created == created)
    content = connection.scalar(query.with_for_update() if locked else query)
    return [] if content is None else msgspec.msgpack.decode(content, type=Ranges)
