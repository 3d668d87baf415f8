"""Files beside the ledger that the page offers for download: backups, and exports for accountants."""

import asyncio
import re
import stat
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Final

import msgspec
import structlog

from common import notify
from common.files import sync_path, write_whole
from common.language import Language
from common.process import own_program
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

MCFD: Final = own_program("from daemon.cli import main; sys.exit(main())")
"""This program's own command, whatever its installed name."""
PIECE: Final = 256 * 1024
EXPORT: Final = re.compile(r"journal-[A-Z]{2}[0-9]{8}(-[0-9]+)?(-test)?-[0-9]{4}\.(csv|jsonl)")
EXPORT_SECONDS: Final = 86_400
"""Seconds until an export is deleted: it can be made again at any time, and the disk is for the ledger."""
PART: Final = ".part"
ORDER = "restore.json"
MODE = 0o600
AGAIN_SECONDS = 5.0
LONGEST_STEP_SECONDS = 600.0
"""Between two reports of progress: after the last one, the whole file is synced to a slow card."""


def backups(folder: Path) -> Sequence[Copy]:
    """Newest first."""
    return _listed(folder.glob(f"*{SUFFIX}"))


def archives(folder: Path) -> Sequence[Copy]:
    """Archives of closed years; each backup makes the missing ones."""
    return _listed(folder.glob("mcfd-archive-*.tar"))


def exports(folder: Path) -> Sequence[Copy]:
    return _listed(path for path in folder.glob("journal-*") if EXPORT.fullmatch(path.name))


def _listed(paths: Iterable[Path]) -> Sequence[Copy]:
    copies = []
    for path in paths:
        with suppress(FileNotFoundError):  # the nightly backup removes old ones
            found = path.lstat()
            if stat.S_ISREG(found.st_mode):
                copies.append(Copy(path.name, round(found.st_mtime * 1000), found.st_size))
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
    """Writes the journal of `year` into a file in `folder` and returns its name. Raises StorageFull before it uses the
    space that the ledger keeps free."""
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
    """Makes the folder; deletes files that a kill left unfinished, and those older than a day."""
    folder.mkdir(exist_ok=True)
    old = time.time() - EXPORT_SECONDS
    for path in folder.glob("journal-*"):
        if path.name.endswith(PART) or path.stat().st_mtime < old:
            path.unlink(missing_ok=True)


class RestoreOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`copy` is a file of the box's own backups; `name` and `address` of the person are for the audit log. `keep_newer`:
    as of `restore`."""

    copy: str
    name: str
    address: str
    keep_newer: bool = False


def order_restore(settings: Settings, copy: str, by: Actor, *, keep_newer: bool) -> None:
    """Raises NotFound if the box has no such copy. Blocking: the order is durable on return."""
    home = settings.storage.path.parent
    if copy not in {each.name for each in backups(home / "backups")}:
        raise NotFound("there is no such copy")
    write_whole(home / ORDER, msgspec.json.encode(RestoreOrder(copy, by.name, by.address, keep_newer)), MODE)


def carry_out_order(settings: Settings) -> None:
    """Restores the ordered copy, if one was ordered. On an error the ledger stays as it is and the error is logged."""
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
            keep_newer=order.keep_newer,
            progress=_Patience(),
        )
    except (StorageError, msgspec.MsgspecError, OSError) as error:
        log.error("restore.failed", cause=str(error))  # noqa: TRY400  one line, not a traceback
    else:
        event = "restore.unneeded" if restored.is_unchanged else "restore.done"
        log.warning(event, copy=order.copy, by=order.name, aside=str(restored.aside), newer=len(restored.newer))
    file.unlink()
    sync_path(home)


class _Patience:
    """Extends systemd's time limit for the start as long as there is progress: a ledger of ten years takes long."""

    def __init__(self) -> None:
        self._last_report = float("-inf")

    def __call__(self, *_: int) -> None:
        if time.monotonic() - self._last_report > AGAIN_SECONDS:
            self._last_report = time.monotonic()
            notify.still_starting(LONGEST_STEP_SECONDS)


def is_ordered(settings: Settings) -> bool:
    """Whether the next start restores a copy."""
    return (settings.storage.path.parent / ORDER).exists()
