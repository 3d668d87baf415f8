"""The API keys of tills and screens; each change is in the audit log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from daemon.core.audit import DAEMON, Actor
from daemon.core.keys import USUAL_TERMS, ApiKey, KeyTerms, generate
from daemon.core.ledger.attempt import Mode
from daemon.store.access import LedgerAccess
from daemon.store.tables import keys


class ApiKeys(LedgerAccess):
    async def create(
        self, nim: str, mode: Mode, label: str, *, at: int, terms: KeyTerms = USUAL_TERMS, by: Actor = DAEMON
    ) -> str:
        """The key itself: the only time that it is seen."""
        text = generate(mode)
        key = ApiKey(0, nim, mode, label, at, 0, terms.role, terms.expires_at, strict=terms.strict)
        await self.write(keys.create_key, key=key, text=text, by=by)
        return text

    async def list_keys(self) -> Sequence[ApiKey]:
        """Oldest first, those that were revoked included."""
        return await self.read(keys.list_keys)

    async def revoke(self, key_id: int, *, at: int, by: Actor = DAEMON) -> None:
        """NotFound when there is no such key, or it works no more."""
        await self.write(keys.revoke_key, key_id=key_id, at=at, by=by)

    async def note_uses(self, uses: Mapping[int, int]) -> None:
        """When each key (by its id) was used last, in ms."""
        await self.write(keys.note_uses, uses=uses)
