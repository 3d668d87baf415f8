"""Files that lie beside the ledger for the page to hand out: copies of it, and what was made for accountants."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Final

from common.language import Language
from daemon.api.page.deps import Copy
from daemon.core.clock import zone
from daemon.core.report.journal import Page
from daemon.rotation import SUFFIX
from daemon.settings import Settings
from daemon.usecases.reports import report
from daemon.usecases.reports.journal_files import EXCEL_FR, journal_pieces
from daemon.usecases.worker.machine_worker import MachineWorker

PIECE: Final = 256 * 1024
EXPORT: Final = re.compile(r"journal-[A-Z]{2}[0-9]{8}(-[0-9]+)?(-test)?-[0-9]{4}\.(csv|jsonl)")
KEPT_SECONDS: Final = 86_400
"""How long a file for accountants lies there: it can be made again at any time, and the disk is the ledger's."""
PART: Final = ".part"


def backups(folder: Path) -> Sequence[Copy]:
    """Newest first."""
    return _listed(folder.glob(f"*{SUFFIX}"))


def archives(folder: Path) -> Sequence[Copy]:
    """Of closed years; each backup makes those that are missing."""
    return _listed(folder.glob("mcfd-archive-*.tar"))


def exports(folder: Path) -> Sequence[Copy]:
    return _listed(path for path in folder.glob("journal-*") if EXPORT.fullmatch(path.name))


def _listed(paths: Iterable[Path]) -> Sequence[Copy]:
    found = [path for path in paths if path.is_file() and not path.is_symlink()]
    copies = [Copy(path.name, round(path.stat().st_mtime * 1000), path.stat().st_size) for path in found]
    return sorted(copies, key=lambda copy: -copy.at)


async def read(folder: Path, name: str) -> AsyncGenerator[bytes, None]:
    with (folder / name).open("rb") as file:
        while piece := await asyncio.to_thread(file.read, PIECE):
            yield piece


async def export(  # noqa: PLR0917  what is to be written, and who is told
    settings: Settings,
    folder: Path,
    worker: MachineWorker,
    year: int,
    form: str,
    between: tuple[int, int],
    language: Language,
    tell: Callable[[int, int], None],
) -> str:
    """The journal of that year as a file in `folder`; its name. StorageFull before what the ledger keeps free is touched."""
    await asyncio.to_thread(_tidy, folder)
    mode = "-test" if worker.book.mode == "test" else ""
    name = f"journal-{worker.book.nim}{mode}-{year}.{form}"
    expected = (await report.a_report(worker, *between)).certs_count
    shown = EXCEL_FR if form == "csv" and language == "fr" else form
    part, written = folder / (name + PART), 0
    try:
        with part.open("wb") as file:
            async with aclosing(
                journal_pieces(worker, Page(*between), shown, zone(settings.reports.timezone))
            ) as pieces:
                async for piece in pieces:
                    await worker.ledger.check_free_space(worker.book)
                    await asyncio.to_thread(file.write, piece)
                    written += piece.count(b"\n")
                    tell(written, max(expected, written))
        part.replace(folder / name)
    finally:
        part.unlink(missing_ok=True)
    return name


def _tidy(folder: Path) -> None:
    """Makes the folder; files that a kill has left half made and those of yesterday go."""
    folder.mkdir(exist_ok=True)
    old = time.time() - KEPT_SECONDS
    for path in folder.glob("journal-*"):
        if path.name.endswith(PART) or path.stat().st_mtime < old:
            path.unlink(missing_ok=True)
