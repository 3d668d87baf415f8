"""Makes large ledgers in minutes: in bulk, with the store's own functions for everything but plain columns.

All rows that `begin` and `certify` would leave are written at once: codec, chain, tally and seq are theirs
(`tally.contribution`, `chain.record_hash`, `codec.pack`), and so are totals, checkpoints and closures
(`totals.bring_in`, `closures.close_period`). Only data that the daemon deletes after a week is missing: events of
certifications and keys of requests. `mcfd verify` finds no fault in the result."""

import json
import os
import random
import time
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
from support.shop import IFU

from bench.shop.till import invoice
from daemon.core.events import CLOSURE
from daemon.core.invoice.intake import Defaults, read_invoice
from daemon.core.invoice.invoice import PAYMENT_LABELS, Deferral, Invoice
from daemon.core.ledger import chain
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.book import Book
from daemon.core.ledger.deferred import REQUESTED, DeferredSale
from daemon.core.ledger.entries import SaleDeferred
from daemon.core.ledger.tally import contribution
from daemon.core.machine.state import FiscalCounters, LastInvoice
from daemon.store.sqlite.file import open_file
from daemon.store.sqlite.high_water import HighWater, book_name
from daemon.store.sqlite.migrations import migrate, migrations
from daemon.store.tables.book import books, closures, deferred, entries, totals
from daemon.store.tables.book.codec import invoice_bytes, pack, tally_bytes
from daemon.store.tables.events import DEFAULT_DESTINATIONS, EventWriter
from simulator.machine.options import DEFAULT_RATES

NIM = "EL02000001-1"
PER_DAY = 1000
DAY = 86_400_000
OPENING = 7 * 3_600_000
"""Time of a day's first invoice, in ms after midnight; the last one is about 13 hours later."""
GAP = 46_000
CLOSING = 21 * 3_600_000
TEMPLATES = 2000
SCATTER = 2_654_435_761
"""Knuth's multiplier: scatters numbers over 2**32."""
ITEMS = (1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6, 8, 10)
CODE_LETTERS = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789" * 8
"""Letter for each random byte."""

COLUMNS = (
    "book_id, seq, state, number, type, total_ttc, begun_at, ended_at, base_tc, base_fvc, base_frc, tc, fvc, frc, fc, "
    "line_ms, duration_ms, code, machine_time, ifu, request_id, isf, hash, tally, id, payload"
)
INSERT = f"INSERT INTO certification ({COLUMNS}) VALUES ({', '.join('?' * len(COLUMNS.split(', ')))})"  # noqa: S608


class Maker:
    """Adds to the live book of one machine in a new ledger, in order of time; times in ms."""

    def __init__(self, path: Path, nim: str = NIM) -> None:
        self._path = path
        self.connection = open_file(path, "rwc")
        for pragma in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -400000", "temp_store = MEMORY"):
            self.connection.execute(f"PRAGMA {pragma}").fetchall()
        migrate(self.connection, migrations())
        self.book = books.open_book(self.connection, nim, "live")
        self.connection.execute("BEGIN")
        self.count = 0
        self._dice = random.Random(f"ledger {nim}")
        self._sales = _templates(self._dice)
        self._teller = EventWriter(DEFAULT_DESTINATIONS)

    def sell(self, times: Iterable[int]) -> None:
        """A certification begun at each of these times."""
        connection, book = self.connection, self.book
        head = books.read_head(connection, book.id)
        record = None
        rows = []
        for begun in times:
            record, tally = self._next_record(begun)
            content = invoice_bytes(record.invoice)
            hashed = chain.record_hash(head.hash, record, content)
            head = books.BookHead(record.seq, record.ended_at, hashed)
            rows.append((*row_of(book, record, tally, hashed), pack(content)))
        connection.executemany(INSERT, rows)
        if record is not None and record.counters is not None:
            seen = LastInvoice(record.number, record.code, record.machine_time, record.type, record.total_ttc)
            books.advance_certified(connection, book.id, head, counters=record.counters, seen=seen, unexplained=0)
        totals.add_new(connection, book, UTC)

    def close(self, at: int) -> None:
        """A Z at that time."""
        connection, book = self.connection, self.book
        closure = closures.close_period(
            connection,
            book,
            counters=self.counters,
            unexplained=0,
            at=at,
            zone=UTC,
            labels=PAYMENT_LABELS,
        )
        self._teller.write(connection, book, CLOSURE, closure.created_at, ref=closure.z_number)

    def finish(self) -> FiscalCounters:
        """Closes the ledger, complete and durable; the machine's counters. All until here is one transaction: codes are
        random, and several commits would write the pages of their index again and again."""
        z_number = books.book_state(self.connection, self.book).z_number
        self.connection.execute("COMMIT")
        self.connection.close()
        HighWater(self._path).count_number(book_name(self.book.nim, "live", IFU), z_number)
        descriptor = os.open(self._path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
        return self.counters

    @property
    def counters(self) -> FiscalCounters:
        return FiscalCounters(self.count, self.count, 0)

    def _next_record(self, begun: int) -> tuple[Record, bytes]:
        """The next record, and its tally in stored form."""
        self.count = number = self.count + 1
        template, tally = self._sales[number * SCATTER % 2**32 % len(self._sales)]
        sale = msgspec.structs.replace(template, number=f"FV-{number:08d}")
        code = self._dice.randbytes(24).translate(CODE_LETTERS).decode()
        return record_of(number, sale, begun, code), tally


def record_of(number: int, sale: Invoice, begun: int, code: str) -> Record:
    """The `number`-th sale of a book in which each was certified at its first try."""
    return Record(
        id=number,
        number=sale.number,
        type=sale.type,
        state="certified",
        begun_at=begun,
        base=FiscalCounters(number - 1, number - 1, 0),
        total_ttc=sale.total_ttc,
        invoice=sale,
        seq=number,
        ended_at=begun + 150,
        code=code,
        machine_time=f"{datetime.fromtimestamp(begun / 1000, UTC):%Y%m%d%H%M%S}",
        ifu=IFU,
        counters=FiscalCounters(number, number, 0),
        fc=number,
        line_ms=140,
        duration_ms=146,
        request_id=f"bench-{number:x}",
    )


def row_of(book: Book, record: Record, tally: bytes, hashed: bytes) -> tuple[Any, ...]:
    """Values for `COLUMNS`, without the payload at its end."""
    counters = record.counters or record.base
    return (
        *(book.id, record.seq, record.state, record.number, record.type, record.total_ttc),
        *(record.begun_at, record.ended_at),
        *(record.base.tc, record.base.fvc, record.base.frc),
        *(counters.tc, counters.fvc, counters.frc),
        *(record.fc, record.line_ms, record.duration_ms, record.code, record.machine_time, record.ifu),
        *(record.request_id, record.invoice.isf, hashed, tally, record.id),
    )


def _templates(dice: random.Random) -> list[tuple[Invoice, bytes]]:
    """Sales without their number, and their contribution to the totals."""
    defaults = Defaults("1", "Caisse 1", "1")
    sent = (json.dumps(invoice(f"T-{number}", dice.choice(ITEMS), dice)) for number in range(TEMPLATES))
    sales = [
        read_invoice(json.loads(body, parse_float=Decimal), defaults=defaults, rates=DEFAULT_RATES) for body in sent
    ]
    return [(sale, tally_bytes(contribution(record_of(1, sale, 0, "")))) for sale in sales]


def make(path: Path, days: int, nim: str = NIM) -> FiscalCounters:
    """Makes a ledger of so many days with `PER_DAY` certifications and a Z each, of which the last is yesterday: for one
    a year behind the box's clock the daemon first needs an operator (decision 21). Returns the machine's counters."""
    maker = Maker(path, nim)
    today = time.time_ns() // 1_000_000 // DAY * DAY
    for midnight in range(today - days * DAY, today, DAY):
        maker.sell(range(midnight + OPENING, midnight + OPENING + PER_DAY * GAP, GAP))
        maker.close(midnight + CLOSING)
    return maker.finish()


def add_waiting(path: Path, count: int) -> None:
    """Makes a ledger with `count` deferred sales of the last hours."""
    now, dice = time.time_ns() // 1_000_000, random.Random("waiting")
    templates = [sale for sale, _ in _templates(dice)]
    with closing(open_file(path, "rwc")) as connection:
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        migrate(connection, migrations())
        book = books.open_book(connection, NIM, "live")
        connection.execute("BEGIN")
        for number in range(count):
            sold_at = now - count + number
            invoice_ = msgspec.structs.replace(
                templates[number % TEMPLATES], number=f"W-{number:06d}", deferred=Deferral(sold_at, REQUESTED)
            )
            name, address = f"waiting-{number}", f"address-{number:06d}-of-a-sale"
            sale = DeferredSale(
                *(0, name, bytes(32), name, invoice_.number, invoice_.type, invoice_.total_ttc, sold_at, address),
                invoice=invoice_,
            )
            entry = SaleDeferred(sale.number, sale.type, sale.total_ttc, sold_at, REQUESTED)
            entries.append(connection, book, entry, sold_at)
            deferred.insert(connection, book, sale)
        connection.execute("COMMIT")
