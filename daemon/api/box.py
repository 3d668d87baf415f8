"""State of the box and its lines for `GET /metrics`; and what paper needs: the shop's letterhead and the printer."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from common.language import Language, Text
from daemon.core.delivery import Backlog
from daemon.core.errors import NotFound
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.entries import CalendarKind
from daemon.core.report.calendar_report import CalendarReport
from daemon.core.report.fiscal_reports import ZReport
from daemon.core.report.report_parts import Letterhead
from daemon.paper.escpos import CodePage, as_escpos
from daemon.paper.invoice import invoice_document
from daemon.paper.layout import Document, Width
from daemon.paper.reports import outage_document, report_document
from daemon.paper.shop import Shop, Style
from daemon.printer import ReceiptPrinter
from daemon.store.tables.book.outages import find_outage
from daemon.usecases.reports import report
from daemon.usecases.reports.close_period import calendar_closure
from daemon.usecases.reports.inspect import letterhead_of
from daemon.usecases.worker.machine_worker import MachineWorker


class LineSlot(msgspec.Struct, frozen=True, kw_only=True):
    """Ten minutes of a line from `at` (ms); `line_ms`: mean time of a certification at the machine."""

    at: int
    exchanges: int
    retries: int
    garbage: int
    certified: int
    line_ms: int


class BoxFigures(msgspec.Struct, frozen=True, kw_only=True):
    """`outbox`: by destination, `upstream` or the name of a webhook (its URL may be a secret). `verified_at`: when
    `mcfd verify` last found the ledger sound (ms), 0 for never; `damaged`: number of known damages."""

    outbox: dict[str, tuple[Backlog, ...]]
    disk_free_bytes: int
    ledger_bytes: int
    verified_at: int
    damaged: int = 0
    commits: int


class Box(msgspec.Struct, frozen=True, kw_only=True):
    """`line`: counters of a worker's line since the start (`bridge.link.LineStatistics`), None without a line, as for a
    disabled machine; `history`: its last day, oldest first."""

    figures: Callable[[], Awaitable[BoxFigures]]
    line: Callable[[MachineWorker], Mapping[str, int] | None]
    history: Callable[[MachineWorker], Sequence[LineSlot]] = lambda _: ()


class ShopOf(Protocol):
    def __call__(self, worker: MachineWorker, language: Language, letterhead: Letterhead | None = None, /) -> Shop: ...


def bare_shop(worker: MachineWorker, _language: Language, _letterhead: Letterhead | None = None) -> Shop:
    """The shop as far as the book alone knows it."""
    return Shop(nim=worker.book.nim, ifu=worker.ifu, is_test=worker.book.mode == "test")


class Paper(msgspec.Struct, frozen=True, kw_only=True):
    """`shop`: makes the head of a worker's documents in a language; `printer`: None without `[printer]`."""

    shop: ShopOf = bare_shop
    language: Language = "fr"
    width: Width = 48
    code_page: CodePage = "cp858"
    printer: ReceiptPrinter | None = None

    async def shop_by_letterhead(self, worker: MachineWorker, language: Language, letterhead: bytes) -> Shop:
        """The shop at the time of a document, by its letterhead's digest; the present one if it has none."""
        return self.shop(worker, language, await letterhead_of(worker.ledger, worker.book, letterhead))

    async def invoice(self, worker: MachineWorker, record: Record, style: Style) -> Document:
        return invoice_document(
            record, await self.shop_by_letterhead(worker, style.language, record.invoice.letterhead), style
        )

    async def closure(self, worker: MachineWorker, closed: ZReport | CalendarReport, style: Style) -> Document:
        shop = await self.shop_by_letterhead(worker, style.language, bytes.fromhex(closed.letterhead))
        return report_document(closed, shop, style, printed_at=closed.created_at)

    async def z(self, worker: MachineWorker, reference: str, style: Style) -> Document:
        """Of a stored Z by its number or `report_id`."""
        found = await report.closure(worker, reference)
        return await self.closure(worker, msgspec.json.decode(found.body, type=ZReport), style)

    async def period(self, worker: MachineWorker, kind: CalendarKind, wanted: str, style: Style) -> Document:
        """Of a closed month or year by its number or period."""
        body = await calendar_closure(worker, kind, wanted)
        return await self.closure(worker, msgspec.json.decode(body, type=CalendarReport), style)

    async def outage(self, worker: MachineWorker, number: int, style: Style) -> Document:
        """The declaration of an outage, by the shop as it is now."""
        found = await worker.ledger.read(find_outage, worker.book, number)
        return outage_document(found, self.shop(worker, style.language), style, at=worker.now())

    async def print(self, document: Document) -> None:
        """Prints; NotFound without a printer, PrinterFailed if it did not accept all of it."""
        if self.printer is None:
            raise NotFound(Text("this box has no printer: [printer] in its configuration says where one is"))
        await self.printer.print(await asyncio.to_thread(as_escpos, document, self.width, self.code_page))
