"""The audit log, for what leaves nothing else in the ledger, and for whoever reads it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from daemon.core.audit import Action, Actor, AuditEntry
from daemon.store.access import LedgerAccess
from daemon.store.tables import audit


class AuditLog(LedgerAccess):
    async def note(
        self, action: Action, subject: str, *, at: int, by: Actor, detail: Mapping[str, str] | None = None
    ) -> None:
        """For what leaves nothing else in the ledger."""
        await self.write(audit.add, action=action, subject=subject, at=at, by=by, detail=detail)

    async def newest(self, limit: int = 100, before: int = sys.maxsize) -> Sequence[AuditEntry]:
        """Newest first; go on with `before` = the id of the last one."""
        return await self.read(audit.newest, limit=limit, before=before)

    async def broken_entry(self) -> AuditEntry | None:
        """The first entry that does not follow from the one before it; None when the chain is whole."""
        return await self.read(audit.broken_entry)
