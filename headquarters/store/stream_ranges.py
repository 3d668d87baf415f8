"""Stored message numbers of each stream, as ranges instead of a last number: a database that was restored from an
older copy, even under running instances, shows its losses.

A stream is identified by name and creation time: numbers of a recreated stream are unrelated to the earlier ones."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
from sqlalchemy import Connection, select, update

from headquarters.store import tables
from headquarters.store.database import Part, insert_new

Ranges = list[tuple[int, int]]
"""Sorted, inclusive, not adjacent."""


class StreamName(NamedTuple):
    name: str
    created: str


class StreamMessages(NamedTuple):
    """Messages of a stream taken in one transaction."""

    stream: str
    created: str
    numbers: Sequence[int]


class StreamRanges(Part):
    def ranges(self, stream: str, created: str) -> Ranges:
        with self._database.read() as connection:
            return _read(connection, stream, created)

    def forget(self, stream: str, created: str) -> None:
        """For a stream that was restored itself: it is read again in full."""
        with self._database.write() as connection:
            _replace(connection, stream, created, [])

    def add(self, stream: str, created: str, first: int, last: int) -> None:
        with self._database.write() as connection:
            _write(connection, stream, created, [(first, last)])


def add_messages(connection: Connection, messages: StreamMessages) -> None:
    """Every instance writes this row and locks it until the commit: call it last in a transaction."""
    _write(connection, messages.stream, messages.created, [(number, number) for number in sorted(messages.numbers)])


def joined(ranges: Iterable[tuple[int, int]]) -> Ranges:
    found: Ranges = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return found


def missing(ranges: Ranges, floor: int) -> Ranges:
    """Numbers of 1…`floor` outside the ranges."""
    found: Ranges = []
    at = 1
    for first, last in ranges:
        if at <= min(first - 1, floor):
            found.append((at, min(first - 1, floor)))
        at = last + 1
    return [*found, (at, floor)] if at <= floor else found


def _write(connection: Connection, stream: str, created: str, more: Ranges) -> None:
    insert_new(
        connection, tables.stream_ranges, [{"stream": stream, "created": created, "ranges": msgspec.msgpack.encode([])}]
    )
    ranges = _read(connection, stream, created, locked=True)
    _replace(connection, stream, created, joined([*ranges, *more]))


def _replace(connection: Connection, stream: str, created: str, ranges: Ranges) -> None:
    table = tables.stream_ranges
    one = update(table).where(table.c.stream == stream, table.c.created == created)
    connection.execute(one.values(ranges=msgspec.msgpack.encode(ranges)))


def _read(connection: Connection, stream: str, created: str, *, locked: bool = False) -> Ranges:
    table = tables.stream_ranges.c
    query = select(table.ranges).where(table.stream == stream, table.created == created)
    content = connection.scalar(query.with_for_update() if locked else query)
    return [] if content is None else msgspec.msgpack.decode(content, type=Ranges)
