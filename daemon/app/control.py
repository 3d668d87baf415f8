"""The daemon's control socket: commands of root and of the daemon's own user; one request and answer per connection."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec
import structlog

from common.files import real_path, runtime_folder
from common.language import Language, Text
from common.language.reasons import INTERNAL_ERROR
from common.sockets import bind_unix, peer_user
from common.wire.instants import now_millis
from daemon.core.errors import McfdError
from daemon.core.ledger.decision import DecisionRefused
from daemon.ledger_access import shell_actor
from daemon.operations import (
    LONGEST,
    AnyOperation,
    NoteAction,
    OperationAnswer,
    OperationRequest,
    ReplayOutbox,
    refusal_of,
)
from daemon.settings import Settings
from daemon.store.store import Store
from daemon.usecases.worker.machine_workers import MachineWorkers

log = structlog.get_logger(__name__)

REQUEST_SECONDS: Final = 10.0
NO_WORKERS: Final = MachineWorkers(())


def control_path(settings: Settings) -> Path:
    """The socket's path: in systemd's runtime directory, otherwise beside the ledger."""
    if folder := runtime_folder():
        return folder / "control.sock"
    ledger = real_path(settings.storage.path)
    return ledger.with_name(ledger.name + ".sock")


@asynccontextmanager
async def controlled(
    store: Store,
    settings: Settings,
    workers: MachineWorkers = NO_WORKERS,
    wakes: Sequence[Callable[[], None]] = (),
    reload: Callable[[], None] = lambda: None,
) -> AsyncIterator[None]:
    """Serves the control socket; commands in progress are completed on exit. `wakes` wake the senders after a replay of
    the outbox; `reload` reads the settings again."""
    control, path = CommandServer(store, workers, wakes, reload), control_path(settings)
    try:
        listener = bind_unix(path)
    except OSError as error:  # a file system without sockets: the tills are served without it
        log.error("control.unavailable", reason=str(error))  # noqa: TRY400  one line, not a traceback
        yield
        return
    server = await asyncio.start_unix_server(control.serve, sock=listener, limit=LONGEST)
    try:
        yield
    finally:
        server.close()
        await asyncio.gather(*control.tasks, return_exceptions=True)
        path.unlink(missing_ok=True)


class CommandServer:
    def __init__(
        self, store: Store, workers: MachineWorkers, wakes: Sequence[Callable[[], None]], reload: Callable[[], None]
    ) -> None:
        self._store = store
        self._workers = workers
        self._reload = reload
        self._wakes = wakes
        self.tasks: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  of this connection
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        uid = peer_user(writer.get_extra_info("socket"))
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                line = await reader.readline()
            writer.write(msgspec.json.encode(await self._answer(uid, line)) + b"\n")
            await writer.drain()
        except (OSError, TimeoutError, ValueError) as error:  # the client went away, or sent no line
            log.debug("command.unanswered", cause=str(error))
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _answer(self, uid: int, line: bytes) -> OperationAnswer:
        if uid not in (0, os.geteuid()):
            return _refused(Text("only root and the daemon's own user may have it changed"))
        try:
            request = msgspec.json.decode(line, type=OperationRequest)
        except msgspec.DecodeError as error:  # a command of another version
            return _refused(Text("the daemon does not understand the command ({error})", error=error))
        operation, by = request.operation, shell_actor(uid, request.sudo_user)
        if operation.is_offline:
            return _refused(Text("the daemon has to be stopped for that"), request.language)
        try:
            async with self._workers.at_rest(operation.at_rest):
                result = await operation.carry_out(self._store, at=now_millis(), by=by)
        except (McfdError, DecisionRefused) as error:
            return OperationAnswer(refusal=refusal_of(error, request.language))
        except Exception as error:
            log.exception("command.failed", operation=_name(operation))
            return _refused(INTERNAL_ERROR(error=type(error).__name__), request.language)
        log.info("command.done", operation=_name(operation), by=by.name)
        if isinstance(operation, ReplayOutbox):
            for wake in self._wakes:
                wake()
        elif isinstance(operation, NoteAction) and operation.action in ("upstream.joined", "upstream.left"):
            self._reload()
        return OperationAnswer(msgspec.Raw(msgspec.json.encode(result)))


def _refused(why: Text, language: Language = "en") -> OperationAnswer:
    return OperationAnswer(refusal=refusal_of(McfdError(why), language))


def _name(operation: AnyOperation) -> str:
    return str(type(operation).__struct_config__.tag)
