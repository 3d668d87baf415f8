"""The ledger, as a command opens it: beside a daemon that may be running."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from daemon.cli import answers
from daemon.cli.shared import Unavailable
from daemon.settings import Settings

if TYPE_CHECKING:
    from daemon.store import Store
    from daemon.store.verify import Findings

T = TypeVar("T")


def with_ledger(settings: Settings, job: Callable[[Store], Awaitable[T]], *, make: bool = False) -> T:
    """What `job` gives back; a ledger that does not exist yet is made only when asked for."""
    path = settings.storage.path if make else existing(settings)
    try:
        return asyncio.run(_worked(settings, job))
    finally:
        give_to_owner(path)


def existing(settings: Settings) -> Path:
    path = settings.storage.path
    if not path.exists():
        raise Unavailable(answers.NO_LEDGER(path=path))
    return path


def figures(findings: Findings) -> dict[str, object]:
    """What a look through a ledger found, for `--json`."""
    return {
        "problems": findings.problems,
        "books": findings.books,
        "records": findings.records,
        "closures": findings.closures,
    }


def now() -> int:
    """Milliseconds since 1970, UTC."""
    return time.time_ns() // 1_000_000


def give_to_owner(path: Path) -> None:
    """What root made beside the ledger belongs to whom the directory belongs: otherwise the daemon, which is not root,
    could not write its own ledger after `sudo mcfd keys create`."""
    if os.geteuid() != 0:
        return
    home = path.parent.stat()
    for file in path.parent.glob(f"{path.name}*"):
        if file.lstat().st_uid == 0 != home.st_uid:
            os.chown(file, home.st_uid, home.st_gid, follow_symlinks=False)


async def _worked(settings: Settings, job: Callable[[Store], Awaitable[T]]) -> T:
    from daemon.store import Store

    store = await Store.open(
        settings.storage.path,
        timezone=settings.reports.zone,
        labels=settings.payment_labels(),
        lanes=settings.lanes(),
        live_only=settings.live_only(),
        exclusive=False,
    )
    async with store:
        return await job(store)
