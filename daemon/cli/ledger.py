"""The ledger, as a command opens it: beside a daemon that may be running, and as the user whose it is."""

from __future__ import annotations

import os
import pwd
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from daemon.cli.failures import Unavailable
from daemon.core.audit import Actor
from daemon.language import Counted, Text, tr
from daemon.owner import as_owner

if TYPE_CHECKING:
    from daemon.settings import Settings
    from daemon.store import Store
    from daemon.store.maintenance.verify import Findings

T = TypeVar("T")


def with_ledger(settings: Settings, job: Callable[[Store], Awaitable[T]], *, make: bool = False) -> T:
    """What `job` gives back; a ledger that does not exist yet is made only when asked for."""
    path = settings.storage.path if make else existing(settings)
    import asyncio
    import concurrent.futures.thread  # noqa: F401  what is needed is loaded by root: its owner may not read the program's files

    from daemon.store import Store  # noqa: F401  as above

    with as_owner(path.parent):
        return asyncio.run(_worked(settings, job))


def existing(settings: Settings) -> Path:
    path = settings.storage.path
    if not path.exists():
        raise Unavailable(tr("no ledger yet at {path}; `mcfd run` or `mcfd keys create` makes it", path=path))
    return path


def figures(findings: Findings) -> dict[str, object]:
    """What a look through a ledger found, for `--json`."""
    found = {name: [tr(text) for text in getattr(findings, name)] for name in ("problems", "notes")}
    return found | {name: getattr(findings, name) for name in ("books", "records", "closures")}


def counts(findings: Findings) -> dict[str, Text]:
    """The same for people: `records` and `closures` of a sentence."""
    return {
        "records": Counted("{count} record", "{count} records", findings.records),
        "closures": Counted("{count} Z closure", "{count} Z closures", findings.closures),
    }


def whoever_types() -> Actor:
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
