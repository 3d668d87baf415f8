"""A copy is put back from the page: ordered while the daemon serves, carried out by the next start, before the ledger is opened.

The order is a file beside the ledger, durable before the daemon stops, and gone only once it is carried out or cannot be: a power cut in
between puts the same copy back once more, and nothing has been certified meanwhile."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import structlog

from common import notify
from common.files import sync_folder, write_whole
from daemon.app.page.files import backups
from daemon.app.upkeep.box_clock import now_millis
from daemon.core.audit import Actor
from daemon.core.errors import LedgerUnusable, NotFound, StorageError
from daemon.settings import Settings
from daemon.store.maintenance.backup import restore

log = structlog.get_logger(__name__)

ORDER = "restore.json"
MODE = 0o600
AGAIN_SECONDS = 5.0
LONGEST_STEP_SECONDS = 600.0
"""Between two words of progress: the last of them comes before the whole file is synced to a slow card."""


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
    sync_folder(home)


class _Patience:
    """Has systemd wait for a ledger of ten years, as long as there is progress."""

    def __init__(self) -> None:
        self._told = float("-inf")

    def __call__(self, *_: int) -> None:
        if time.monotonic() - self._told > AGAIN_SECONDS:
            self._told = time.monotonic()
            notify.still_starting(LONGEST_STEP_SECONDS)


def is_ordered(settings: Settings) -> bool:
    """Whether the next start has a copy to put back."""
    return (settings.storage.path.parent / ORDER).exists()
