"""Who may use the box: people, their sessions, the API keys of tills and screens; and the audit log, which has each change."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from daemon.core.audit import DAEMON, Action, Actor, AuditEntry
from daemon.core.keys import USUAL_TERMS, ApiKey, KeyTerms, check_terms, make_key
from daemon.core.ledger.attempt import Mode
from daemon.core.people import Person, Role, Session
from daemon.store.access import LedgerAccess
from daemon.store.tables import audit, keys, people


class PeopleAccess(LedgerAccess):
    """Passwords come as hashes (`core.passwords`), sessions as the SHA-256 of what a cookie holds."""

    async def create(self, name: str, role: Role, password: str, *, at: int, by: Actor = DAEMON) -> None:
        """One who was disabled comes back. InvalidRequest when the name is taken."""
        await self.write(people.create_person, name=name, role=role, password=password, at=at, by=by)

    async def all(self) -> Sequence[Person]:
        """By name, those that were disabled included."""
        return await self.read(people.list_people)

    def find(self, name: str) -> tuple[Person, str] | None:
        """With the hash of the password."""
        return self.peek(people.find_person, name=name)

    async def set_password(self, name: str, password: str, *, at: int, by: Actor = DAEMON) -> None:
        """Ends their sessions. NotFound when there is none of that name who may log in."""
        await self.write(people.set_password, name=name, password=password, at=at, by=by)

    async def disable(self, name: str, *, at: int, by: Actor = DAEMON) -> None:
        """At once: their sessions end. NotFound as above."""
        await self.write(people.disable_person, name=name, at=at, by=by)

    async def open_session(self, person_id: int, name: str, digest: bytes, *, at: int, by: Actor) -> None:
        await self.write(people.open_session, person_id=person_id, name=name, digest=digest, at=at, by=by)

    def session(self, digest: bytes) -> Session | None:
        """Read at every request: a few microseconds. None when it was ended, or its person disabled."""
        return self.peek(people.find_session, digest=digest)

    async def end_session(self, digest: bytes, *, at: int, by: Actor) -> None:
        await self.write(people.end_session, digest=digest, at=at, by=by)

    async def note_uses(self, uses: Mapping[bytes, int], *, idle_before: int) -> None:
        """When each session was used last; those that were not used since `idle_before` (ms) end."""
        await self.write(people.note_session_uses, uses=uses, idle_before=idle_before)


class ApiKeys(LedgerAccess):
    async def create(
        self, nim: str, mode: Mode, label: str, *, at: int, terms: KeyTerms = USUAL_TERMS, by: Actor = DAEMON
    ) -> str:
        """The key itself: the only time that it is seen. InvalidRequest for terms that no key has."""
        check_terms(terms)
        new_key = make_key(mode, signed=terms.signed)
        key = ApiKey(
            *(0, nim, mode, label, at, 0, terms.role, terms.expires_at),
            strict=terms.strict,
            lane=terms.lane,
            public=new_key.public,
        )
        await self.write(keys.create_key, key=key, hashed=new_key.hash, by=by)
        return new_key.text

    async def list_keys(self) -> Sequence[ApiKey]:
        """Oldest first, those that were revoked included."""
        return await self.read(keys.list_keys)

    async def revoke(self, key_id: int, *, at: int, by: Actor = DAEMON) -> None:
        """NotFound when there is no such key, or it works no more."""
        await self.write(keys.revoke_key, key_id=key_id, at=at, by=by)

    async def note_uses(self, uses: Mapping[int, int]) -> None:
        """When each key (by its id) was used last, in ms."""
        await self.write(keys.note_uses, uses=uses)


class AuditLog(LedgerAccess):
    async def note(
        self, action: Action, subject: str, *, at: int, by: Actor, detail: Mapping[str, str] | None = None
    ) -> None:
        """For what leaves nothing else in the ledger."""
        await self.write(audit.add, action=action, subject=subject, at=at, by=by, detail=detail)

    async def newest(self, limit: int = 100, before: int = sys.maxsize) -> Sequence[AuditEntry]:
        """Newest first; go on with `before` = the id of the last one."""
        return await self.read(audit.newest, limit=limit, before=before)
