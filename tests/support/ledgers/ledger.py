"""A real ledger in a file, and a till that drives it the way the use cases do, with a machine made of three counters."""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from daemon.core.audit import INTERNAL, Call
from daemon.core.clock import millis, zone
from daemon.core.delivery import Outgoing
from daemon.core.errors import McfdError
from daemon.core.invoice.invoice import CREDITS, Customer, Invoice, Item, Payment, TaxLine
from daemon.core.ledger.attempt import NOT_SENT, Attempt, Outcome, Record
from daemon.core.ledger.book import Book, Closure
from daemon.core.ledger.entries import CashKind, CashMove
from daemon.core.machine.state import Certified, FiscalCounters, LastInvoice, MachineState
from daemon.store.store import Store
from daemon.store.tables.book import acts, attempts, originals
from daemon.store.tables.book.books import book_state, open_book

NIM = "EL02000015-1"
IFU = "00084440Y"
ZONE = zone("Africa/Ouagadougou")
START = 1_765_000_000_000
MINUTE = 60_000
RATES = {"A": 0, "B": 1800, "C": 1000}


@contextlib.asynccontextmanager
async def opened(path: Path, **options: object) -> AsyncIterator[Store]:
    async with await Store.open(path, **{"timezone": ZONE, "reserve_bytes": 0, **options}) as store:
        yield store


def invoice(
    number: str = "F-1",
    *,
    type_: str = "FV",
    amounts: Sequence[tuple[str, int]] = (("B", 15000),),
    method: str = "E",
    reference: str = "",
) -> Invoice:
    """One line for each (group, amount); VAT by group, rounded half up."""
    items = tuple(
        Item(f"Article {at}", group, RATES[group], amount * 100, 1000, amount, amount)
        for at, (group, amount) in enumerate(amounts)
    )
    total = sum(amount for _, amount in amounts)
    return Invoice(
        number=number,
        type=type_,
        price_mode="TTC",
        operator_id="1",
        operator_name="Caisse 1",
        isf="1",
        customer=Customer(),
        items=items,
        payments=(Payment(method, total),),
        taxes=taxes(amounts),
        total_ttc=total,
        nature="COR" if type_ in CREDITS else "",
        reference=reference,
    )


def taxes(amounts: Sequence[tuple[str, int]]) -> tuple[TaxLine, ...]:
    sums: dict[str, int] = {}
    for group, amount in amounts:
        sums[group] = sums.get(group, 0) + amount
    lines = []
    for group, ttc in sorted(sums.items()):
        ht = (2 * ttc * 10000 + 10000 + RATES[group]) // (2 * (10000 + RATES[group]))
        lines.append(TaxLine(group, RATES[group], ht, ttc - ht, ttc))
    return tuple(lines)


def code_of(number: str) -> str:
    return hashlib.sha256(number.encode()).hexdigest()[:24].upper()


@dataclass
class Till:
    """`at` is the time of the next thing, a minute after the one before; `counters` are the machine's."""

    store: Store
    book: Book
    at: int = START
    counters: FiscalCounters = field(default_factory=lambda: FiscalCounters(0, 0, 0))
    sold: int = 0

    @classmethod
    async def of(cls, store: Store, nim: str = NIM, mode: str = "live") -> Till:
        book = await store.ledger.write(open_book, nim, mode)
        state = store.ledger.peek(book_state, book)
        return cls(store, book, max(state.last_at, START), state.counters or FiscalCounters(0, 0, 0), state.last_seq)

    def moved(self, invoice: Invoice) -> FiscalCounters:
        tc, fvc, frc = self.counters.tc, self.counters.fvc, self.counters.frc
        return FiscalCounters(tc + 1, fvc, frc + 1) if invoice.is_credit else FiscalCounters(tc + 1, fvc + 1, frc)

    def word(self, invoice: Invoice) -> Certified:
        """What the machine says when it certifies; its counters move."""
        self.counters = self.moved(invoice)
        return Certified(code_of(invoice.number), "20251206100000", IFU, self.counters)

    async def begin(self, sale: Invoice, key: bytes = b"", body: bytes = b"") -> int:
        self.at += MINUTE
        attempt = Attempt(sale, self.counters, self.at, f"request-{sale.number}", key, body)
        attempt_id = await self.store.ledger.write(attempts.begin, self.book, attempt)
        if sale.is_credit:
            try:
                await self.store.ledger.write(originals.claim, self.book, attempt_id, sale)
            except McfdError:
                await self.store.ledger.write(attempts.end, self.book, attempt_id, "abandoned", NOT_SENT, at=self.at)
                raise
        return attempt_id

    async def finish(self, attempt_id: int, sale: Invoice) -> Record:
        self.at += 50
        outcome = Outcome(self.word(sale), sale, sale.total_ttc, self.at, line_ms=40, duration_ms=50)
        return await self.store.ledger.write(self.store.ledger.certify, self.book, attempt_id, outcome)

    async def certify(self, sale: Invoice, key: bytes = b"", body: bytes = b"") -> Record:
        return await self.finish(await self.begin(sale, key, body), sale)

    async def sell(self, total: int = 15000, group: str = "B") -> Record:
        """A sale with a number of its own."""
        self.sold += 1
        return await self.certify(invoice(f"S-{self.sold}", amounts=((group, total),)))

    async def fail(
        self, sale: Invoice, state: str = "refused", reason: str = "E:No amount!", key: bytes = b""
    ) -> Record:
        attempt_id = await self.begin(sale, key, b"body")
        self.at += 50
        return await self.store.ledger.write(attempts.end, self.book, attempt_id, state, reason, at=self.at)

    async def close(self, *, unexplained: int = 0, call: Call = INTERNAL) -> Closure:
        self.at += MINUTE
        return await self.store.ledger.close_period(
            self.book, counters=self.counters, unexplained=unexplained, at=self.at, call=call
        )

    async def move_cash(self, amount: int = 500, kind: CashKind = "deposit") -> None:
        self.at += MINUTE
        move = CashMove(kind, amount, "float", "1", "Awa")
        await self.store.ledger.write(acts.move_cash, self.book, move, at=self.at, answer=lambda _: b"{}")

    def state(self, last: Invoice | None = None) -> MachineState:
        """C1h."""
        result = None
        if last is not None:
            result = LastInvoice(last.number, code_of(last.number), "20251206100000", last.type, last.total_ttc)
        return MachineState(NIM, IFU, "20251206100000", self.counters, RATES, result)


@contextlib.asynccontextmanager
async def opened_till(path: Path, **options: object) -> AsyncIterator[tuple[Store, Till]]:
    async with opened(path, **options) as store:
        yield store, await Till.of(store)


class Settlement(NamedTuple):
    """One decision of a person; `attempt_id` is 0 where no attempt was concerned."""

    decision: str
    attempt_id: int
    attention: str
    reason: str


def settlements(connection: sqlite3.Connection, book: Book) -> list[Settlement]:
    sql = "SELECT decision, coalesce(attempt_id, 0), attention, reason FROM settlement WHERE book_id = ? ORDER BY id"
    return [Settlement(*row) for row in connection.execute(sql, (book.id,))]


def query(path: Path, sql: str, *values: object) -> list[tuple]:
    """What is in the file, seen from outside."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql, values).fetchall()


def tamper(path: Path, sql: str, *values: object) -> None:
    """A change behind the ledger's back."""
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(sql, values).rowcount != 0


async def sent_by_a_box(path: Path) -> list[Outgoing]:
    """What waits upstream after a Z on New Year's Day: two Zs, and before the second a month and a year."""
    async with opened(path) as store:
        till = await Till.of(store)
        till.at = millis(datetime(2026, 12, 31, 18, tzinfo=UTC))
        await till.sell(5000)
        await till.close()
        till.at = millis(datetime(2027, 1, 1, 18, tzinfo=UTC))
        await till.close()
        waiting = await store.outbox.waiting(till.book.nim, "live", 10)
        await store.outbox.mark_sent(waiting[0].id, at=till.at)
        assert [entry.id for entry in await store.outbox.waiting(till.book.nim, "live", 1)] == [waiting[1].id]
        return list(waiting)
