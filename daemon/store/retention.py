"""What is let go of after its time, and facts about the file."""

from __future__ import annotations

import asyncio
import sqlite3

from daemon.store.access import LedgerAccess
from daemon.store.maintenance import housekeeping, sandbox
from daemon.store.tables.meta import Damage, read_number, write_damage, write_meta

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

    async def note_verified(self, *, at: int) -> None:
        """`mcfd verify` has found the whole ledger sound."""

        def job(connection: sqlite3.Connection) -> None:
            write_meta(connection, VERIFIED_AT, str(at))
            write_damage(connection, Damage())

        await self.write(job)

    async def note_damage(self, damage: Damage) -> None:
        """`mcfd verify` has found that."""
        await self.write(write_damage, damage=damage)
        self._open.free_space.reset()

    async def verified_at(self) -> int:
        """When that was last so (ms), 0 for never."""
        return self.peek(read_number, VERIFIED_AT)

    async def note_away(self, *, at: int) -> None:
        """A backup of the whole box is on another disk."""
        await self.write(write_meta, AWAY_AT, str(at))

    async def away_at(self) -> int:
        """When that was last so (ms), 0 for never."""
        return self.peek(read_number, AWAY_AT)

    @property
    def commits(self) -> int:
        """Commits since the ledger was opened; each is one fsync."""
        return self._open.writer.commits
