"""Access to the ledger from outside the daemon, as the ledger's user: reads beside the daemon; changes by the daemon
or, if none runs, under the ledger's lock."""

from __future__ import annotations

import os
import pwd
import socket
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from errno import EPERM
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar, cast

import msgspec

from common.language import Text, ambient
from common.language.system import reason
from common.sockets import peer_user, unix_address
from common.wire.instants import now_millis
from daemon.core.audit import Actor
from daemon.core.errors import LedgerInUse, StorageError
from daemon.owner import as_owner

if TYPE_CHECKING:
    from daemon.operations import AnyOperation, Operation, OperationAnswer, OperationRequest
    from daemon.settings import Settings
    from daemon.store.store import Opening, Store

T = TypeVar("T")
P = ParamSpec("P")

START_PATIENCE: Final = 30.0
"""Seconds to wait for a daemon that has the ledger but does not answer yet, or no longer."""
ASK_AGAIN: Final = 0.1


@contextmanager
def reading(path: Path) -> Iterator[Any]:
    """A read-only connection to the ledger, as its user. Raises StorageError, which names the file."""
    from daemon.store.sqlite.disk_failure import storage_faults
    from daemon.store.sqlite.file import open_to_read

    try:
        with as_owner(path.parent), storage_faults(), closing(open_to_read(path)) as connection:
            yield connection
    except StorageError as error:
        raise type(error)(Text("{path}: {why}", path=path, why=error)) from error


def read_rows(
    settings: Settings,
    function: Callable[Concatenate[Any, P], T],
    /,
    *args: P.args,
    **named: P.kwargs,
) -> T:
    """Reads by one function of `store.tables`; without `Store` and asyncio, whose import takes long. StorageError."""
    from daemon.store.sqlite.migrations import is_current, migrations

    with reading(existing(settings)) as connection:
        if is_current(connection, migrations()):
            return function(connection, *args, **named)
    return read_ledger(settings, lambda store: store.ledger.read(function, *args, **named))


def read_ledger(settings: Settings, job: Callable[[Store], Awaitable[T]]) -> T:
    """Returns the result of `job`. Raises StorageError."""
    existing(settings)
    return _here(settings, job, "read")


def change(settings: Settings, operation: Operation[T], *, make: bool = False) -> T:
    """Carries the operation out: by the daemon that has the ledger, otherwise here. Makes a missing ledger only with
    `make`. Raises the operation's errors, StorageError."""
    from daemon.operations import OperationRequest, result_of

    if not make:
        existing(settings)
    by, until = shell_user(), time.monotonic() + START_PATIENCE
    while True:
        try:
            return _here(settings, lambda store: operation.carry_out(store, at=now_millis(), by=by), "command")
        except LedgerInUse as error:
            if error.control is None or operation.is_offline:
                raise
            if answer := _request(
                error.control,
                settings.storage.path,
                OperationRequest(cast("AnyOperation", operation), os.environ.get("SUDO_USER", ""), ambient()),
            ):
                return result_of(answer, operation)
            if time.monotonic() > until:
                raise
            time.sleep(ASK_AGAIN)


def existing(settings: Settings) -> Path:
    """The ledger's path. Raises StorageError if there is none."""
    path = settings.storage.path
    if not path.exists():
        raise StorageError(Text("no ledger yet at {path}; `mcfd run` or `mcfd keys create` makes it", path=path))
    return path


def check_stopped(ledger: Path) -> None:
    """Raises LedgerInUse if a daemon has it, StorageError if it is no file: call it before any prompt."""
    from daemon.store.sqlite.file import check_is_file
    from daemon.store.sqlite.lock import LedgerLock, lock_path

    check_is_file(ledger)
    with as_owner(ledger.parent):
        if lock_path(ledger).exists():
            LedgerLock.acquire(ledger, is_command=True).release()


def shell_user() -> Actor:
    return shell_actor(os.getuid(), os.environ.get("SUDO_USER", ""))


def shell_actor(uid: int, sudo_user: str) -> Actor:
    """The actor for the audit log: the Unix user, and behind sudo also its caller."""
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = str(uid)
    caller = sudo_user if uid == 0 else ""
    return Actor(f"shell:{name}" + (f" (sudo: {caller[:32]})" if caller and caller.isprintable() else ""))


def _here(settings: Settings, job: Callable[[Store], Awaitable[T]], opening: Opening) -> T:
    import asyncio
    import concurrent.futures.thread  # noqa: F401  loaded as root: the ledger's owner may not read the program's files

    from daemon.store.store import Store  # noqa: F401  as above

    with as_owner(settings.storage.path.parent):
        return asyncio.run(_run(settings, job, opening))


async def _run(settings: Settings, job: Callable[[Store], Awaitable[T]], opening: Opening) -> T:
    from daemon.store.store import Store

    store = await Store.open(
        settings.storage.path,
        timezone=settings.reports.zone,
        labels=settings.payment_labels(),
        destinations=settings.destinations(),
        live_only=settings.live_only(),
        opening=opening,
    )
    async with store:
        return await job(store)


def _request(control: Path, ledger: Path, request: OperationRequest) -> OperationAnswer | None:
    """The daemon's answer; None without a listener. A user who may write beside the ledger could place a socket there,
    so only the ledger's owner is accepted. StorageError without permission, or if the daemon ended first."""
    from daemon.operations import OperationAnswer

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            with unix_address(control) as address:
                connection.connect(address)
            if peer_user(connection) != ledger.stat().st_uid:
                raise PermissionError(EPERM, os.strerror(EPERM))
        except (FileNotFoundError, ConnectionRefusedError):
            return None
        except OSError as error:
            raise StorageError(
                Text("the daemon does not answer at {path}: {why}", path=control, why=reason(error))
            ) from None
        try:
            connection.sendall(msgspec.json.encode(request) + b"\n")
            with connection.makefile("rb") as answers:
                return msgspec.json.decode(answers.readline(), type=OperationAnswer)
        except (OSError, msgspec.DecodeError):
            raise StorageError(
                Text("the daemon ended before it answered: all of it is done, or nothing (mcfd audit); then try again")
            ) from None
