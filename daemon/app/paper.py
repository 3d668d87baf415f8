"""Printing for this box: the shop's data from configuration and machine, and Z closures printed automatically."""

import asyncio
import contextlib
from functools import partial

import msgspec
import structlog

from common.language import Language
from daemon.api.box import Paper
from daemon.app.runtime import Runtime
from daemon.company import shop_of
from daemon.core.errors import McfdError, StorageError
from daemon.core.events import CLOSURE, PRINTER
from daemon.core.report.fiscal_reports import ZReport
from daemon.core.report.report_parts import Letterhead
from daemon.paper.shop import Shop, Style
from daemon.printer import ReceiptPrinter
from daemon.settings import Settings
from daemon.store.tables import z_papers
from daemon.store.tables.book.closures import find_closure
from daemon.usecases.reports import inspect
from daemon.usecases.worker.machine_worker import BookEvent, MachineWorker

log = structlog.get_logger(__name__)

STOPPED_WHILE_PRINTING = "mcfd ended before it was printed"


def paper_of(settings: Settings) -> Paper:
    printer = settings.printer
    if printer is None:
        return Paper(shop=partial(_shop, settings), language=settings.server.language)
    return Paper(
        shop=partial(_shop, settings),
        language=settings.server.language,
        width=printer.width,
        code_page=printer.code_page,
        printer=ReceiptPrinter(printer.address, printer.timeout),
    )


def _shop(settings: Settings, worker: MachineWorker, language: Language, letterhead: Letterhead | None = None) -> Shop:
    taxpayer = worker.taxpayer or worker.stored_taxpayer
    return shop_of(settings, worker.book, worker.ifu, taxpayer, language, letterhead=letterhead)


class ZPrinting:
    """Prints each Z of a real machine if `[printer] z = true`. A failure is an event and delays nothing; so is, at the
    next start, a Z whose printing an end of the daemon has cut."""

    def __init__(self, runtime: Runtime, paper: Paper) -> None:
        self._runtime = runtime
        self._paper = paper
        self._tasks: set[asyncio.Task[None]] = set()

    async def resume(self, worker: MachineWorker) -> None:
        for z_number in await worker.ledger.write(z_papers.resume, worker.book):
            self._announce(worker, z_number, STOPPED_WHILE_PRINTING)

    def on_event(self, event: BookEvent) -> None:
        if event.type == CLOSURE and event.book.mode == "live":
            worker = next(worker for worker in self._runtime.all_workers if worker.book == event.book)
            task = asyncio.get_running_loop().create_task(self._print(worker, event.ref), name=f"print Z {event.ref}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _print(self, worker: MachineWorker, z_number: int) -> None:
        paper = self._paper
        if paper.printer is None:
            return
        try:
            await inspect.learn_taxpayer(worker)
            closure = await worker.ledger.read(find_closure, worker.book, z_number)
            z_report = msgspec.json.decode(closure.body, type=ZReport)
            await paper.print(await paper.closure(worker, z_report, Style(paper.language)))
        except McfdError as error:
            await self._note(worker, z_number, is_printed=False)
            self._announce(worker, z_number, str(error))
        else:
            await self._note(worker, z_number, is_printed=True)

    async def _note(self, worker: MachineWorker, z_number: int, *, is_printed: bool) -> None:
        """A failure is harmless: the next start announces the Z."""
        with contextlib.suppress(StorageError):
            await worker.ledger.write(z_papers.note, worker.book, z_number, is_printed=is_printed)

    def _announce(self, worker: MachineWorker, z_number: int, cause: str) -> None:
        log.warning("printer.failed", nim=worker.book.nim, z_number=z_number, cause=cause)
        self._runtime.publish(BookEvent(PRINTER, worker.book, detail=f"Z {z_number}: {cause}"))


async def print_closures(runtime: Runtime, paper: Paper) -> None:
    """From now on, if `[printer] z = true`; else no Z is unprinted."""
    printer, printing = runtime.settings.printer, ZPrinting(runtime, paper)
    is_on = printer is not None and printer.z
    if is_on:
        runtime.listeners.append(printing.on_event)
    for worker in runtime.all_workers:
        if worker.book.mode == "live":
            with contextlib.suppress(StorageError):  # the next start tries again
                await (printing.resume(worker) if is_on else worker.ledger.write(z_papers.forget, worker.book))
