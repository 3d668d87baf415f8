"""What the composition root knows of paper: whose it is, and the printer of this box."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from daemon.language import Language
from daemon.paper.escpos import CodePage
from daemon.paper.layout import Width
from daemon.paper.shop import Shop
from daemon.usecases.worker.machine_worker import MachineWorker


class Printer(Protocol):
    async def print(self, data: bytes) -> None:
        """Returns once the printer has taken all of it; PrinterFailed when it did not."""
        ...


def bare_shop(worker: MachineWorker, _language: Language) -> Shop:
    """What the book alone says."""
    return Shop(nim=worker.book.nim, ifu=worker.ifu, is_test=worker.book.mode == "test")


class Paper(msgspec.Struct, frozen=True, kw_only=True):
    """`shop` gives what stands above every document of a worker's book, in that language; `printer` is None without `[printer]`."""

    shop: Callable[[MachineWorker, Language], Shop] = bare_shop
    language: Language = "fr"
    width: Width = 48
    code_page: CodePage = "cp858"
    printer: Printer | None = None
