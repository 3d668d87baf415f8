"""The journal as a file beside the daemon: for a command, and for the page's yearly file."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from datetime import tzinfo
from typing import Final

import msgspec

from daemon.core.ledger.book import Book
from daemon.core.report.journal import Page
from daemon.store.journal import Journal
from daemon.store.ledger import Ledger
from daemon.usecases.reports import journal_files
from daemon.usecases.reports.journal import JournalSource
from daemon.usecases.worker.machine_worker import nobody_waits

EXCEL_FR: Final = "excel-fr"


class BesideTheDaemon(msgspec.Struct, frozen=True):
    """A `JournalSource`: it reads what the daemon writes, and holds up no till."""

    book: Book
    journal: Journal
    ledger: Ledger
    till_waits: Callable[[], bool] = nobody_waits


def journal_pieces(source: JournalSource, page: Page, form: str, zone: tzinfo) -> AsyncGenerator[bytes, None]:
    """`form` is csv, excel-fr or jsonl; headings first, where the form has them."""
    if form == EXCEL_FR:
        return journal_files.as_excel(source, page, zone=zone)
    return journal_files.as_jsonl(source, page) if form == "jsonl" else journal_files.as_csv(source, page)
