"""`mcfd journal --output`: a range of the journal as a file, for an accountant."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from daemon.cli.commands.records.report import find_book
from daemon.cli.failures import Failure
from daemon.cli.output import say
from daemon.cli.progress import Progress
from daemon.language import Counted, tr
from daemon.language.system import reason
from daemon.ledger_access import with_ledger
from daemon.owner import as_owner
from daemon.settings import Settings

if TYPE_CHECKING:
    from daemon.core.report.journal import Page
    from daemon.store import Store

FORMATS: Final = ("csv", "excel-fr", "jsonl")


def write_journal(settings: Settings, nim: str, page: Page, target: Path, form: str, *, test: bool) -> None:
    """The file is its caller's; one that exists is left alone, one that was not finished is taken away."""
    try:
        with as_owner(target.parent):
            opened = target.open("xb")
        with opened as file:
            try:
                lines = with_ledger(
                    settings, lambda store: _written(store, settings, page, file, form, nim=nim, test=test)
                )
            except BaseException:
                with as_owner(target.parent):
                    target.unlink(missing_ok=True)
                raise
    except FileExistsError:
        raise Failure(tr("{path} exists already", path=target)) from None
    except OSError as error:
        raise Failure(tr("{path} cannot be written: {why}", path=target, why=reason(error))) from None
    say(tr(Counted("written: {path} ({count} line)", "written: {path} ({count} lines)", lines, path=target)))


async def _written(
    store: Store, settings: Settings, page: Page, file: BinaryIO, form: str, *, nim: str, test: bool
) -> int:
    """Lines, without the headings."""
    from daemon.app.journal_file import BesideTheDaemon, journal_pieces
    from daemon.core.report.fiscal_reports import a_report

    book = await find_book(store, settings, nim, test=test)
    tally = await store.ledger.tally_between(book, page.start, page.end)
    expected = a_report(book, tally, (), page.start, page.end).certs_count
    source, written = BesideTheDaemon(book, store.journal, store.ledger), 0
    with Progress() as progress:
        async with aclosing(journal_pieces(source, page, form, settings.reports.zone)) as pieces:
            async for piece in pieces:
                file.write(piece)
                written += piece.count(b"\n")
                progress(written, max(expected, written))
    return written - (form != "jsonl")
