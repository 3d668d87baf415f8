"""Copy of the register in a file beside the database, because boxes cannot send this data again."""

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import structlog

from common.files import replacing
from common.wire.instants import now_millis
from headquarters.intake.threads import Threads
from headquarters.store.database import BadContent, StoreError
from headquarters.store.register import Register, RegisterContent
from headquarters.store.revision import RevisionLost

log = structlog.get_logger(__name__)

LOOK_SECONDS = 2.0
TRIES = 3


class RegisterCopy:
    """With `path` None the copy is in memory, for the lifetime of the process."""

    def __init__(self, register: Register, path: Path | None) -> None:
        self._register = register
        self._path = path
        self._in_memory = b""
        self._revision = 0
        self._written = 0
        self._trouble = ""

    def heal(self) -> None:
        """Called at the start: merges the copy into a new or restored database, and does so again before each use of
        another revision."""
        copy = self._read()
        self._revision = copy.revision if copy is not None else 0
        self._register.settled.look = self._copy
        self._register.revision()

    def write(self) -> None:
        """Writes the copy if the register has changed; atomic, readable by its owner only."""
        if self._register.revision() not in (self._written, 0):
            self._copy()

    def _copy(self) -> int:
        """Writes the copy, after restoring losses from it. Returns the revision without losses."""
        for _ in range(TRIES):
            try:
                with self._register.copied(self._revision) as (revision, pieces):
                    self._write(revision, pieces)
                    self._revision = revision
                    return revision
            except RevisionLost:
                copy = self._read()
                log.warning("register.put_back", path=str(self._path), known=self._revision)
                self._revision = copy.revision if copy is not None else 0
                if copy is not None and self._restored(copy):
                    log.warning("register.restored", path=str(self._path), revision=copy.revision)
        raise StoreError("the register changes faster than it can be copied")

    def _restored(self, copy: RegisterContent) -> bool:
        """Whether the database lacked anything of the copy."""
        try:
            return self._register.from_copy(copy, now_millis())
        except (BadContent, ValueError, TypeError, LookupError) as error:
            self._rename_damaged(error)
            return False

    def _rename_damaged(self, error: Exception) -> None:
        """Renames a damaged copy for inspection; the next copy replaces it."""
        log.error("register.copy_unreadable", path=str(self._path), reason=str(error))
        self._revision = 0
        if self._path is not None and not isinstance(error, OSError):
            with contextlib.suppress(OSError):
                self._path.replace(self._path.with_suffix(".damaged"))

    def _write(self, revision: int, pieces: Iterator[bytes]) -> None:
        if self._path is None:
            self._in_memory = b"".join(pieces)
        elif revision:
            try:
                with replacing(self._path, 0o600) as file:
                    file.writelines(pieces)
            except OSError as error:  # a full disk is tried again
                if str(error) != self._trouble:
                    self._trouble = str(error)
                    log.error("register.not_copied", path=str(self._path), reason=self._trouble)  # noqa: TRY400  # one line is enough
                return
        self._trouble = ""
        self._written = revision

    async def run(self, threads: Threads) -> None:
        """Runs until cancelled."""
        while True:
            with contextlib.suppress(StoreError):  # the next request reports it
                await threads.run(self.write)
            await asyncio.sleep(LOOK_SECONDS)

    def _read(self) -> RegisterContent | None:
        try:
            content = self._in_memory if self._path is None else self._path.read_bytes()
            return msgspec.json.decode(content, type=RegisterContent) if content else None
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            self._rename_damaged(error)
            return None
