"""People who log in to the shop's page, and their sessions; each change is in the audit log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from daemon.core.audit import DAEMON, Actor
from daemon.core.people import Person, Session
from daemon.core.roles import Role
from daemon.store.access import LedgerAccess
from daemon.store.tables import people


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
        """Asked for every request: a few microseconds. None when it was ended, or its person disabled."""
        return self.peek(people.find_session, digest=digest)

    async def end_session(self, digest: bytes, *, at: int, by: Actor) -> None:
        await self.write(people.end_session, digest=digest, at=at, by=by)

    async def note_uses(self, uses: Mapping[bytes, int], *, idle_before: int) -> None:
        """When each session was used last; those that were not used since `idle_before` (ms) end."""
        await self.write(people.note_session_uses, uses=uses, idle_before=idle_before)
