"""Presence: the box's report to headquarters on each machine: ledger, line, outbox, and what needs attention."""

import hashlib
import os
from collections.abc import Sequence
from importlib.metadata import version

import msgspec

from common.wire.instants import now_millis
from common.wire.presence import HEAD_DIGITS, MAX_BYTES, Presence, encode_presence
from daemon.app.runtime import Runtime
from daemon.core.clock import millis_text
from daemon.core.delivery import Backlog, BookSummary
from daemon.core.report.machine_info import tax_server
from daemon.store.tables.book import deferred
from daemon.store.tables.book.books import summary
from daemon.store.tables.book.outages import out_since
from daemon.usecases.delivery.presence import MachinePresence
from daemon.usecases.worker.machine_worker import MachineWorker

BYTES_PER_MB = 1_000_000
DIGEST_DIGITS = 8
LONGEST_VERSION = 24


class PresenceSource:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._version = version("mcfd")[:LONGEST_VERSION]

    async def words(self, key_id: str) -> Sequence[MachinePresence]:
        """One presence for each live machine; none for the sandbox."""
        backlogs = {(backlog.nim, backlog.mode): backlog for backlog in await self._runtime.store.outbox.backlog()}
        return [
            MachinePresence(worker.book.nim, await self._word(worker, backlogs.get((worker.book.nim, "live")), key_id))
            for worker in self._runtime.workers
            if worker.book.mode == "live"
        ]

    async def _word(self, worker: MachineWorker, backlog: Backlog | None, key_id: str) -> bytes:
        now = await worker.ledger.read(summary, worker.book)
        waiting = await worker.ledger.read(deferred.backlog, worker.book)
        presence = msgspec.structs.replace(
            self._presence(worker, now, backlog, key_id),
            sold=_instant(waiting.oldest_at),
            outage=_instant(worker.ledger.peek(out_since, worker.book)),
        )
        content = encode_presence(presence)
        if len(content) > MAX_BYTES:
            raise ValueError(f"a presence of {len(content)} bytes")
        return content

    def _presence(self, worker: MachineWorker, standing: BookSummary, backlog: Backlog | None, key_id: str) -> Presence:
        counters = standing.counters
        drift = worker.time.drift
        return Presence(
            type="bf.mcfd.presence.v1",
            nim=worker.book.nim,
            at=millis_text(now_millis()),
            ledger=standing.ledger_id,
            boot=self._runtime.boot,
            version=self._version,
            key=key_id,
            epoch=standing.epoch,
            z=standing.z_number,
            z_head=standing.z_head.hex()[:HEAD_DIGITS],
            seq=standing.seq,
            head=standing.head.hex()[:HEAD_DIGITS],
            counters=None if counters is None else (counters.tc, counters.fvc, counters.frc),
            certified=_instant(standing.certified_at),
            waiting=backlog.waiting if backlog else 0,
            parked=backlog.parked if backlog else 0,
            oldest=_instant(backlog.oldest_at if backlog else 0),
            connected=worker.connected,
            attention=bool(worker.attention),
            drift=None if drift is None else round(drift),
            tax_days=_tax_days(worker),
            disk=self._free_mb(),
            config=self._configuration(),
            stands_for=first.book.nim if (first := worker.stands_for) else "",
            asks=standing.needs_last_z,
        )

    def _free_mb(self) -> int:
        disk = os.statvfs(self._runtime.settings.storage.path)
        return disk.f_bavail * disk.f_frsize // BYTES_PER_MB

    def _configuration(self) -> str:
        """Digest of the current configuration file; empty without a readable file."""
        file = self._runtime.settings.file
        try:
            return hashlib.sha256(file.read_bytes()).hexdigest()[:DIGEST_DIGITS] if file else ""
        except OSError:
            return ""


def _instant(at: int) -> str:
    return millis_text(at) if at else ""


def _tax_days(worker: MachineWorker) -> int | None:
    link = worker.server_link
    return None if link is None else tax_server(link, worker.now()).days_since_contact
