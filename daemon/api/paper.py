"""What the composition root knows of paper: whose it is, and the printer of this box."""

from __future__ import annotations

import asyncio
from typing import Protocol

import msgspec

from common.language import Language, Text
from daemon.core.errors import NotFound
from daemon.core.report.letterhead import Letterhead
from daemon.paper.elements import Document
from daemon.paper.escpos import CodePage, as_escpos
from daemon.paper.layout import Width
from daemon.paper.shop import Shop
from daemon.usecases.reports.inspect import letterhead_of
from daemon.usecases.worker.machine_worker import MachineWorker


class PrinterPort(Protocol):
    async def print(self, data: bytes) -> None:
        """Returns once the printer has taken all of it; PrinterFailed when it did not."""
        ...


class ShopOf(Protocol):
    def __call__(self, worker: MachineWorker, language: Language, letterhead: Letterhead | None = None, /) -> Shop: ...


def bare_shop(worker: MachineWorker, _language: Language, _letterhead: Letterhead | None = None) -> Shop:
    """What the book alone says."""
    return Shop(nim=worker.book.nim, ifu=worker.ifu, is_test=worker.book.mode == "test")


class Paper(msgspec.Struct, frozen=True, kw_only=True):
    """`shop` gives what stands above every document of a worker's book, in that language; `printer` is None without `[printer]`."""

    shop: ShopOf = bare_shop
    language: Language = "fr"
    width: Width = 48
    code_page: CodePage = "cp858"
    printer: PrinterPort | None = None

    async def shop_by_letterhead(self, worker: MachineWorker, language: Language, letterhead: bytes) -> Shop:
        """As it was called when that was certified or closed, by the digest of its letterhead; as it is now where there is none."""
        return self.shop(worker, language, await letterhead_of(worker, letterhead))

    async def print(self, document: Document) -> None:
        """NotFound without a printer, PrinterFailed when it did not take all of it."""
        if self.printer is None:
            raise NotFound(Text("this box has no printer: [printer] in its configuration says where one is"))
        await self.printer.print(await asyncio.to_thread(as_escpos, document, self.width, self.code_page))
