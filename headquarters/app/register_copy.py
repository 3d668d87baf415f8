"""The register's file beside the database: what headquarters cannot ask the boxes for again."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from pathlib import Path

import msgspec
import structlog

from headquarters.intake.threads import Threads
from headquarters.store.database import StoreError
from headquarters.store.register import Copy, Register

log = structlog.get_logger(__name__)

LOOK_SECONDS = 2.0


class RegisterCopy:
    """`path` None keeps none."""

    def __init__(self, register: Register, path: Path | None) -> None:
        self._register = register
        self._path = path
        self._written = -1

    def heal(self) -> None:
        """At the start: a database that is new, or was put back, gets what it lacks."""
        copy = self._read()
        if copy is not None and self._register.from_copy(copy, time.time_ns() // 1_000_000):
            log.warning("register.restored", path=str(self._path), revision=copy.revision)

    def write(self) -> None:
        """Where the register has changed since; whole or not at all, for its owner's eyes."""
        revision = self._register.revision()
        if self._path is None or revision in (self._written, 0):
            return
        descriptor, name = tempfile.mkstemp(prefix=".register-", dir=self._path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.writelines(self._register.to_copy())
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(self._path)
        except (OSError, StoreError):
            Path(name).unlink(missing_ok=True)
            raise
        self._written = revision

    async def keep(self, threads: Threads) -> None:
        """For ever. A disk that is full today is tried again."""
        trouble = ""
        while True:
            try:
                await threads.run(self.write)
                trouble = ""
            except (OSError, StoreError) as error:
                if str(error) != trouble:
                    trouble = str(error)
                    log.error("register.not_copied", path=str(self._path), reason=trouble)  # noqa: TRY400  # one line is enough
            await asyncio.sleep(LOOK_SECONDS)

    def _read(self) -> Copy | None:
        if self._path is None or not self._path.exists():
            return None
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=Copy)
        except (OSError, msgspec.MsgspecError) as error:
            log.error("register.copy_unreadable", path=str(self._path), reason=str(error))  # noqa: TRY400  # one line is enough
            return None
