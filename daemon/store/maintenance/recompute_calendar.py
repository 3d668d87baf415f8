"""Recomputes closed months and years: each has exactly the Zs since the previous one, and their sums."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from common.language import Text
from daemon.core.ledger.book import Book, Closure, Tally
from daemon.core.ledger.entries import CalendarClosed, CalendarKind, CashTotal, Entry, Placed, TimeRepair
from daemon.core.report.calendar_report import CalendarReport, calendar_report, following
from daemon.store.tables.book.books import BookStart

# As in a Z, texts are the chain's business.
_FIGURES = (
    *("kind", "nim", "certs_count", "total_ttc", "total_ht", "total_tva", "by_group", "by_type", "cash", "created_at"),
    *("number", "period", "z_count", "first_z", "last_z", "grand_total", "z_chain_head", "chain_previous"),
)


class _Passed(NamedTuple):
    """A Z that a closure may hold."""

    z_number: int
    seq: int
    hash: bytes
    running: Tally | None
    cash: CashTotal


class CalendarCheck:
    """Hears of each Z and each closure in the order of the chain."""

    def __init__(self, book: Book, start: BookStart) -> None:
        self._book = book
        self._is_whole = start.is_whole
        self._passed: list[_Passed] = []
        self._last: dict[CalendarKind, CalendarClosed] = {}
        self._repaired: set[CalendarKind] = set()

    def take_closure(self, closure: Closure, running: Tally | None, cash: CashTotal) -> None:
        """`running`: None where lost records leave it open, until a month or year says it."""
        self._passed.append(_Passed(closure.z_number, closure.last_seq, closure.hash, running, cash))

    def problems(self, entry: Entry, placed: Placed, nim: str, previous: bytes) -> Iterator[str]:
        """`previous` is the chain before it; empty where that is of a lost record."""
        if isinstance(entry, TimeRepair):  # months that were to come are closed again
            self._repaired = {"month", "year"}
        if isinstance(entry, CalendarClosed):
            yield from self._problems(entry, placed, nim, previous)

    def _problems(self, closed: CalendarClosed, placed: Placed, nim: str, previous: bytes) -> Iterator[str]:
        name = Text("closure of {period}", period=closed.period)
        before = self._last.get(closed.kind)
        self._last[closed.kind] = closed
        if before is None:
            if not self._is_whole:  # what it holds was let go of, at least in part
                return
            before = CalendarClosed(closed.kind, 0, "", 0, 0, 0, {}, "")
        is_next = not before.period or closed.period == following(before.period)
        is_again = closed.kind in self._repaired and closed.period <= before.period
        self._repaired -= {closed.kind}
        if closed.number <= before.number or not (is_next or is_again):
            yield Text("{name} does not follow the one before it", name=name)
        december = self._last.get("month", before)
        upto = closed.upto_z if closed.kind == "month" else december.upto_z
        closures = [z for z in self._passed if before.upto_z < z.z_number <= upto]
        end = closures[-1] if closures else _Passed(before.upto_z, before.upto_seq, b"", before.running, CashTotal())
        running = closed.running if end.running is None else end.running
        place = (closed.after_z, closed.upto_z, closed.upto_seq, closed.running)
        if place != (before.upto_z, end.z_number, end.seq, running):
            yield Text("{name} does not hold exactly the Zs since the one before it", name=name)
        ours = calendar_report(
            msgspec.structs.replace(self._book, nim=nim),
            kind=closed.kind,
            number=closed.number,
            period=closed.period,
            report_id="",
            created_at=placed.chained_at or placed.at,
            bounds=("", ""),
            zs=[(z.z_number, z.hash) for z in closures],
            before=before.running,
            running=running,
            cash=CashTotal(sum(z.cash.deposits for z in closures), sum(z.cash.withdrawals for z in closures)),
            labels={},
            isfs=(),
            chain_previous=previous,
            letterhead="",
        )
        for figure in _wrong_figures(closed, ours):
            if figure == "chain_previous" and not previous:
                continue
            yield Text("{name} reports another {figure} than its records give", name=name, figure=figure)
        if closed.kind == "year":
            self._passed = [z for z in self._passed if z not in closures]


def _wrong_figures(closed: CalendarClosed, ours: CalendarReport) -> Iterator[str]:
    stored, expected = msgspec.json.decode(closed.body, type=dict[str, Any]), msgspec.to_builtins(ours)
    for figure in _FIGURES:
        value = expected[figure]
        if stored.get(figure) != (list(value) if isinstance(value, tuple) else value):
            yield figure
