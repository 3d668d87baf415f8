"""The ledger from outside the daemon: beside one that may be running, and as the user whose it is."""

from __future__ import annotations

import os
import pwd
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from common.language import Text
from daemon.core.audit import Actor
from daemon.core.errors import StorageError
from daemon.owner import as_owner

if TYPE_CHECKING:
    from daemon.settings import Settings
    from daemon.store import Store

T = TypeVar("T")


def with_ledger(settings: Settings, job: Callable[[Store], Awaitable[T]], *, make: bool = False) -> T:
    """What `job` returns; StorageError. A ledger that does not exist yet is made only with `make`."""
    path = settings.storage.path if make else existing(settings)
    import asyncio
    import concurrent.futures.thread  # noqa: F401  what is needed is loaded by root: its owner may not read the program's files

    from daemon.store import Store  # noqa: F401  as above

    with as_owner(path.parent):
        return asyncio.run(_run(settings, job))


def existing(settings: Settings) -> Path:
    """The ledger's path; StorageError where there is none."""
    path = settings.storage.path
    if not path.exists():
        raise StorageError(Text("no ledger yet at {path}; `mcfd run` or `mcfd keys create` makes it", path=path))
    return path


def shell_user() -> Actor:
    """For the audit log: the Unix user; behind sudo the one who called it, too."""
    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = str(uid)
    caller = os.environ.get("SUDO_USER", "") if uid == 0 else ""
    return Actor(f"shell:{name}" + (f" (sudo: {caller[:32]})" if caller and caller.isprintable() else ""))


def now() -> int:
    """Milliseconds since 1970, UTC."""
    return time.time_ns() // 1_000_000


async def _run(settings: Settings, job: Callable[[Store], Awaitable[T]]) -> T:
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
