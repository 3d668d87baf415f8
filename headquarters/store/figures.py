"""Data for the page and the exports: closures by shop and day, totals, one closure in full."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from sqlalchemy import ColumnElement, Integer, Row, Select, func, literal, select, tuple_

from headquarters.core.checks import ClosureRecord
from headquarters.store import tables
from headquarters.store.database import READ_AT_ONCE, Part

Order = Literal["made", "arrived"]
COLUMNS: dict[Order, str] = {"made": "created_at", "arrived": "arrival"}


Big = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Written = Annotated[str, msgspec.Meta(max_length=64, pattern=r"^[^\x00]*$")]
_HALF = 32


class CursorPlace(NamedTuple):
    """Sort key of a closure: time or arrival number, then machine, Z and id. The bounds apply to cursors of
    clients."""

    number: Big
    machine: Written
    z: Big
    id: Written


class ClosureLine(msgspec.Struct, frozen=True, kw_only=True):
    """A closure without its proof. Amounts in XOF, times in ms."""

    machine: str
    nim: str
    id: str
    z: int
    day: str
    period_start: int
    period_end: int
    created_at: int
    received_at: int
    certs: int
    ttc: int
    ht: int
    tva: int
    groups: tuple[tuple[str, int, int, int], ...]
    payments: tuple[tuple[str, int], ...]
    proven: bool | None
    arrival: int
    replaced_by: int | None
    """Z of the closure that has its sales again, after the ledger was restored: this one counts in no total"""

    def place(self, order: Order) -> CursorPlace:
        return CursorPlace(getattr(self, COLUMNS[order]), self.machine, self.z, self.id)


class Cell(msgspec.Struct, frozen=True):
    """Closures, sales and amount of a shop's day, and its last Z."""

    machine: str
    day: str
    closures: int
    certs: int
    ttc: int
    z: int


class DayTotal(NamedTuple):
    shops: int
    """Shops with a closure."""
    ttc: int


class ProvenClosure(ClosureLine, frozen=True, kw_only=True):
    """One closure with its proof: original headers and body."""

    headers: dict[str, str]
    body: bytes
    key_id: str
    via: str


_LINE = [column for column in tables.closure.c if column.name in ClosureLine.__struct_fields__]


class Figures(Part):
    def lines(
        self,
        *,
        mode: str = "live",
        machine: str | None = None,
        start: int = 0,
        end: int | None = None,
        order: Order = "made",
        after: CursorPlace | None = None,
        limit: int = 1000,
    ) -> list[ClosureLine]:
        """Closures created in start ≤ t < end, in this order, after the cursor `after`."""
        table = tables.closure.c
        query = select(*_LINE).where(table.mode == mode, table.created_at >= start)
        if end is not None:
            query = query.where(table.created_at < end)
        if machine is not None:
            query = query.where(table.machine == machine)
        columns = (tables.closure.c[COLUMNS[order]], table.machine, table.z, table.id)
        if after is not None:
            query = query.where(tuple_(*columns) > tuple_(*after))
        query = query.order_by(*columns).limit(limit)
        return self._database.rows(_line, query)

    @contextlib.contextmanager
    def days_read(
        self, first: str, last: str, *, machines: Sequence[str] | None = None, replaced: bool = False
    ) -> Iterator[Callable[[], Iterator[ClosureLine]]]:
        """Closures of the days `first` to `last` (inclusive), by shop and Z; with `replaced` also those that count in no
        total. The function may be called repeatedly and always reads the same snapshot; rows are streamed, so that a
        month of 10 000 shops needs little memory."""
        query = _days(select(*_LINE), first, last, machines, replaced=replaced)
        query = query.order_by(tables.closure.c.machine, tables.closure.c.z, tables.closure.c.id)
        with self._database.read() as connection:
            streamed = query.execution_options(yield_per=READ_AT_ONCE)
            yield lambda: (_line(**row) for row in connection.execute(streamed).mappings())

    def cells(self, machines: Sequence[str], first: str, last: str) -> list[Cell]:
        table = tables.closure.c
        query = select(table.machine, table.day, func.count(), func.max(table.z), *_sums(table.certs, table.ttc))
        query = _days(query, first, last, machines).group_by(table.machine, table.day)
        with self._database.read() as connection:
            rows = [(*row[:4], *_whole(row[4:])) for row in connection.execute(query)]
        return [Cell(machine, day, closures, certs, ttc, z) for machine, day, closures, z, certs, ttc in rows]

    def totals(self, first: str, last: str, *, machines: Sequence[str] | None = None) -> dict[str, DayTotal]:
        """By day; days without closures are omitted."""
        table = tables.closure.c
        query = select(table.day, func.count(table.machine.distinct()), *_sums(table.ttc))
        with self._database.read() as connection:
            rows = connection.execute(_days(query, first, last, machines).group_by(table.day))
            return {day: DayTotal(shops, *_whole(halves)) for day, shops, *halves in rows}

    def calendar(self, machine: str, year: str) -> Sequence[Row[Any]]:
        """Closed months of the year, and the year itself, of the live book."""
        table = tables.calendar_closure.c
        columns = (table.period, table.number, table.first_z, table.last_z, table.certs, table.ttc, table.grand_ttc)
        mine = (table.machine == machine, table.mode == "live", table.period.startswith(year, autoescape=True))
        query = select(*columns).where(*mine).order_by(table.kind, table.number, table.created_at)
        return self._database.found(query)

    def proven_closures(self, machine: str, id_: str) -> ProvenClosure | None:
        closure, message = tables.closure.c, tables.message.c
        same = (closure.machine == message.machine) & (closure.id == message.id)
        query = select(*_LINE, closure.key_id, closure.via, message.headers, message.body).join(tables.message, same)
        found = self._database.rows(_whole_line, query.where(closure.machine == machine, closure.id == id_))
        return found[0] if found else None

    def instants(self, since: int) -> Iterator[tuple[str, list[int]]]:
        """Closing times of each shop since `since`, to learn the usual time."""
        table = tables.closure.c
        query = select(table.machine, table.created_at).where(table.mode == "live", table.created_at >= since)
        query = query.order_by(table.machine, table.created_at).execution_options(yield_per=READ_AT_ONCE)
        with self._database.read() as connection:
            for machine, rows in groupby(connection.execute(query), key=itemgetter(0)):
                yield machine, [at for _, at in rows]

    def last_closure(self, machine: str) -> ClosureRecord | None:
        """The record of its last live closure, or None."""
        table = tables.closure.c
        query = (
            select(table.record).where(table.machine == machine, table.mode == "live").order_by(table.z.desc()).limit(1)
        )
        found = self._database.scalar(query)
        return msgspec.msgpack.decode(found, type=ClosureRecord) if found is not None else None


def _sums(*columns: ColumnElement[int]) -> list[ColumnElement[Any]]:
    """Two sums per column, of the upper and lower 32 bits: a single sum can exceed SQLite's integers."""
    halves = ((column.bitwise_rshift(literal(_HALF, Integer)), column.bitwise_and(2**_HALF - 1)) for column in columns)
    return [func.sum(half) for both in halves for half in both]


def _whole(halves: Sequence[Any]) -> list[int]:
    """The sums from the halves of `_sums`; PostgreSQL returns them as numeric."""
    return [(int(upper) << _HALF) + int(lower) for upper, lower in zip(halves[::2], halves[1::2], strict=True)]


def _days(
    query: Select[Any], first: str, last: str, machines: Sequence[str] | None, *, replaced: bool = False
) -> Select[Any]:
    table = tables.closure.c
    query = query.where(table.mode == "live", table.day >= first, table.day <= last)
    query = query if replaced else query.where(table.replaced_by.is_(None))
    return query if machines is None else query.where(table.machine.in_(machines))


def _line(groups: bytes, payments: bytes, kind: type[ClosureLine] = ClosureLine, **values: Any) -> Any:
    return kind(
        **values,
        groups=msgspec.msgpack.decode(groups, type=tuple[tuple[str, int, int, int], ...]),
        payments=msgspec.msgpack.decode(payments, type=tuple[tuple[str, int], ...]),
    )


def _whole_line(headers: str, **values: Any) -> Any:
    return _line(kind=ProvenClosure, headers=msgspec.json.decode(headers), **values)
