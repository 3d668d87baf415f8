"""Files that lie beside the ledger for the page to hand out: copies of it, and what was made for accountants."""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Final

import msgspec
import structlog

from common import notify
from common.files import sync_path, write_whole
from common.language import Language
from common.wire.instants import now_millis
from daemon.api.page.deps import Copy
from daemon.core.audit import Actor
from daemon.core.clock import zone
from daemon.core.errors import LedgerUnusable, NotFound, StorageError
from daemon.core.report.journal import Page
from daemon.rotation import SUFFIX
from daemon.settings import Settings
from daemon.store.maintenance.backup import restore
from daemon.usecases.reports import report
from daemon.usecases.reports.journal_files import EXCEL_FR, journal_pieces
from daemon.usecases.worker.machine_worker import MachineWorker

log = structlog.get_logger(__name__)

MCFD: Final = (sys.executable, "-c", "import sys; from daemon.cli import main; sys.exit(main())")
"""The command of this very program, whatever it is called where it is installed."""
PIECE: Final = 256 * 1024
EXPORT: Final = re.compile(r"journal-[A-Z]{2}[0-9]{8}(-[0-9]+)?(-test)?-[0-9]{4}\.(csv|jsonl)")
EXPORT_SECONDS: Final = 86_400
"""How long a file for accountants lies there: it can be made again at any time, and the disk is the ledger's."""
PART: Final = ".part"
ORDER = "restore.json"
MODE = 0o600
AGAIN_SECONDS = 5.0
LONGEST_STEP_SECONDS = 600.0
"""Between two words of progress: the last of them comes before the whole file is synced to a slow card."""


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


async def export(  # noqa: PLR0917  what is to be written, and the progress
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
    variant = EXCEL_FR if form == "csv" and language == "fr" else form
    part, written = folder / (name + PART), 0
    try:
        with part.open("wb") as file:
            async with aclosing(
                journal_pieces(worker, Page(*between), variant, zone(settings.reports.timezone))
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
    old = time.time() - EXPORT_SECONDS
    for path in folder.glob("journal-*"):
        if path.name.endswith(PART) or path.stat().st_mtime < old:
            path.unlink(missing_ok=True)


class RestoreOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`copy` is a file of the box's own backups; who ordered it, and from where, is for the audit log."""

    copy: str
    name: str
    address: str


def order_restore(settings: Settings, copy: str, by: Actor) -> None:
    """NotFound when the box has no such copy. Blocking: it is on the disk afterwards."""
    home = settings.storage.path.parent
    if copy not in {each.name for each in backups(home / "backups")}:
        raise NotFound("there is no such copy")
    write_whole(home / ORDER, msgspec.json.encode(RestoreOrder(copy, by.name, by.address)), MODE)


def carry_out_order(settings: Settings) -> None:
    """What was ordered, if anything was; a copy that cannot be put back leaves the ledger as it is, and says so in the log."""
    home = settings.storage.path.parent
    file = home / ORDER
    if not file.exists():
        return
    try:
        order = msgspec.json.decode(file.read_bytes(), type=RestoreOrder)
        if order.copy not in {each.name for each in backups(home / "backups")}:
            raise LedgerUnusable("there is no such copy")
        restored = restore(
            home / "backups" / order.copy,
            settings.storage.path,
            at=now_millis(),
            by=Actor(order.name, order.address),
            origin=Path(order.copy),
            progress=_Patience(),
        )
    except (StorageError, msgspec.MsgspecError, OSError) as error:
        log.error("restore.failed", cause=str(error))  # noqa: TRY400  one line, not a traceback
    else:
        log.warning("restore.done", copy=order.copy, by=order.name, aside=str(restored.aside))
    file.unlink()
    sync_path(home)


class _Patience:
    """Has systemd wait for a ledger of ten years, as long as there is progress."""

    def __init__(self) -> None:
        self._last_report = float("-inf")

    def __call__(self, *_: int) -> None:
        if time.monotonic() - self._last_report > AGAIN_SECONDS:
            self._last_report = time.monotonic()
            notify.still_starting(LONGEST_STEP_SECONDS)


def is_ordered(settings: Settings) -> bool:
    """Whether the next start has a copy to put back."""
    return (settings.storage.path.parent / ORDER).exists()
