"""What is let go of after its time, and facts about the file."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping

from daemon.store import outbox
from daemon.store.access import LedgerAccess
from daemon.store.maintenance import housekeeping, sandbox
from daemon.store.maintenance.housekeeping import LedgerSize
from daemon.store.maintenance.lost_writes import read_lost
from daemon.store.outbox import Resettled
from daemon.store.tables.meta import Damage, read_damage, read_meta, write_damage, write_meta

VERIFIED_AT = "verified_at"
AWAY_AT = "away_at"
REST = 0.1


class Retention(LedgerAccess):
    async def prune(self, now: int) -> int:
        """Lets go of what is older than its time (`housekeeping`), a little at a time; how many rows."""
        total = 0
        while gone := await self.write(housekeeping.prune, now=now):
            total += gone
        return total

    async def trim_sandbox(self, now: int, budget: int, rest: float = REST) -> int:
        """Lets go of the oldest of each sandbox, until it is within its time and `budget` bytes; how much was done. Tills go first: between
        two steps there are `rest` seconds."""
        total = 0
        while done := await self.write(sandbox.trim, now=now, budget=budget):
            total += done
            await asyncio.sleep(rest)
        return total

    async def resettle(self, webhooks: Mapping[str, str]) -> Resettled:
        """Brings the outbox in line with the receivers of events that are configured, names with addresses (`outbox.resettle`)."""
        return await self.write(outbox.resettle, webhooks=webhooks)

    async def note_verified(self, *, at: int) -> None:
        """`mcfd verify` has found the whole ledger sound."""

        def job(connection: sqlite3.Connection) -> None:
            write_meta(connection, VERIFIED_AT, str(at))
            write_damage(connection, Damage())

        await self.write(job)
        self._open.free_space.look_again()

    async def note_damage(self, damage: Damage) -> None:
        """`mcfd verify` has found that."""
        await self.write(write_damage, damage=damage)
        self._open.free_space.look_again()

    def damage(self) -> Damage:
        """What is known to be damaged."""
        return self.peek(read_damage)

    def lost(self) -> str:
        """Which acknowledged writes are missing, while an operator has not looked at it; empty when none."""
        return self.peek(read_lost)

    async def verified_at(self) -> int:
        """When that was last so (ms), 0 for never."""
        return int(self.peek(lambda connection: read_meta(connection, VERIFIED_AT)) or 0)

    async def note_away(self, *, at: int) -> None:
        """A backup of the whole box is on another disk."""
        await self.write(lambda connection: write_meta(connection, AWAY_AT, str(at)))

    async def away_at(self) -> int:
        """When that was last so (ms), 0 for never."""
        return int(self.peek(lambda connection: read_meta(connection, AWAY_AT)) or 0)

    async def read_fact(self, name: str) -> str:
        """A value of `meta`; empty when it was never written."""
        return self.peek(lambda connection: read_meta(connection, name))

    async def write_fact(self, name: str, value: str) -> None:
        await self.write(lambda connection: write_meta(connection, name, value))

    async def size(self) -> LedgerSize:
        return self.peek(housekeeping.measure)

    @property
    def commits(self) -> int:
        """Commits since the ledger was opened; each is one fsync."""
        return self._open.writer.commits
