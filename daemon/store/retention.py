"""What is let go of after its time, and facts about the file."""

import asyncio
import sqlite3

from daemon.store.access import LedgerAccess
from daemon.store.maintenance import housekeeping, sandbox
from daemon.store.tables.meta import Damage, write_damage, write_meta

VERIFIED_AT = "verified_at"
AWAY_AT = "away_at"
"""In `meta`: when `mcfd verify` last found the ledger sound, and a backup of the whole box was last on another disk (ms)."""
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

    async def note_verified(self, damage: Damage, *, at: int) -> None:
        """`mcfd verify` has found that; nothing: the whole ledger is sound."""

        def job(connection: sqlite3.Connection) -> None:
            write_damage(connection, damage)
            if damage == Damage():
                write_meta(connection, VERIFIED_AT, str(at))

        await self.write(job)
        self._open.free_space.reset()

    @property
    def commits(self) -> int:
        """Commits since the ledger was opened; each is one fsync."""
        return self._open.writer.commits
