"""Access: people with passwords and sessions, programs with keys. Secrets are stored as hashes."""

import hashlib
import secrets
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Row, delete, select, update

from headquarters.store import tables
from headquarters.store.revision import RegisterPart, after, changing

ROLES = ("reader", "accountant", "admin")
"""In ascending order of rights."""
IDLE = 12 * 3_600_000
LONGEST = 30 * 86_400_000
"""Maximum age of a session, in ms."""
TOUCH = 60_000


class HqPerson(NamedTuple):
    """The authenticated person; a program has the name `key`."""

    name: str
    role: str
    """one of `ROLES`"""
    disabled: bool = False

    def may(self, role: str) -> bool:
        return ROLES.index(self.role) >= ROLES.index(role)


def hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


class HqPeople(RegisterPart):
    def create(self, name: str, password: str, role: str, now: int) -> bool:
        """`password` is a hash of `common.passwords`, `role` one of `ROLES`. A disabled person is enabled again. False
        if the name is taken."""
        table, row = tables.person, {"password": password, "role": role, "disabled": False}
        with changing(self._database) as connection:
            again = update(table).where(table.c.name == name, table.c.disabled.is_(True))
            if connection.execute(again.values(changed_at=after(table.c.changed_at, now), **row)).rowcount:
                return True
            if connection.scalar(select(table.c.name).where(table.c.name == name)) is not None:
                return False
            connection.execute(table.insert(), {"name": name, "added_at": now, "changed_at": now, **row})
            return True

    def change(self, name: str, now: int, *, password: str | None = None, disabled: bool | None = None) -> bool:
        """Ends the person's sessions at once. False if the name is unknown."""
        values = {"password": password, "disabled": disabled}
        changes = {key: value for key, value in values.items() if value is not None}
        table = tables.person.c
        with changing(self._database) as connection:
            one = update(tables.person).where(table.name == name)
            changed = one.values(changed_at=after(table.changed_at, now), **changes)
            done = connection.execute(changed).rowcount == 1
            connection.execute(delete(tables.session).where(tables.session.c.name == name))
            return done

    def rehash(self, name: str, before: str, hashed: str) -> None:
        """Stores a new hash of the same password, at a higher cost, unless the password has changed meanwhile."""
        table = tables.person.c
        one = update(tables.person).where(table.name == name, table.password == before)
        self._database.update_one(one.values(password=hashed))

    def password(self, name: str) -> str | None:
        """The hash; None if the person is unknown or disabled."""
        table = tables.person.c
        with self._reading() as connection:
            return connection.scalar(select(table.password).where(table.name == name, table.disabled.is_(False)))

    def name_of(self, typed: str) -> str:
        """The name that a phone has written with another first letter and a blank behind it; else what was typed."""
        typed = typed.strip()
        fits = [one.name for one in self.listed() if not one.disabled and one.name.casefold() == typed.casefold()]
        return fits[0] if len(fits) == 1 else typed

    def listed(self) -> list[HqPerson]:
        table = tables.person.c
        return self._database.rows(HqPerson, select(table.name, table.role, table.disabled).order_by(table.name))

    def begin(self, name: str, now: int) -> str:
        """Starts a session and returns its token; only the hash is stored."""
        token = secrets.token_urlsafe(32)
        with self._database.write() as connection:
            row = {"hash": hashed(token), "name": name, "begun_at": now, "used_at": now}
            connection.execute(delete(tables.session).where(~tables.session.c.used_at.between(now - IDLE, now + IDLE)))
            connection.execute(tables.session.insert(), row)
        return token

    def of_session(self, token: str, now: int) -> HqPerson | None:
        """The session's person; None if it was ended, idle for 12 hours, 30 days old, or if the person is disabled."""
        table, person = tables.session.c, tables.person.c
        same = (table.hash == hashed(token), person.name == table.name, person.disabled.is_(False))
        # The upper limit ends sessions dated by a wrong clock.
        recent = (table.used_at.between(now - IDLE, now + IDLE), table.begun_at > now - LONGEST)
        query = select(person.name, person.role, person.disabled, table.used_at).where(*same, *recent)
        with self._reading() as connection:
            found = connection.execute(query).one_or_none()
        if found is None:
            return None
        if now - found.used_at > TOUCH:
            self._database.update_one(update(tables.session).where(table.hash == hashed(token)).values(used_at=now))
        return HqPerson(found.name, found.role, found.disabled)

    def end(self, token: str) -> None:
        """A change of the register, so that a restored older database is detected and the session stays ended."""
        one = tables.session.c.hash == hashed(token)
        if self._database.scalar(select(tables.session.c.name).where(one)) is None:
            return
        with changing(self._database) as connection:
            connection.execute(delete(tables.session).where(one))

    def create_key(self, role: str, label: str, now: int) -> str:
        """Returns the key, which is shown once."""
        key = f"hq_{secrets.token_urlsafe(32)}"
        row = {"hash": hashed(key), "id": hashed(key)[:12], "role": role, "label": label, "added_at": now}
        with changing(self._database) as connection:
            connection.execute(tables.api_key.insert(), row)
        return key

    def role_of_key(self, key: str) -> str | None:
        table = tables.api_key.c
        with self._reading() as connection:
            return connection.scalar(select(table.role).where(table.hash == hashed(key), table.revoked_at.is_(None)))

    def api_keys(self) -> Sequence[Row[Any]]:
        """`revoked_at` is None while the key is valid."""
        table = tables.api_key.c
        query = select(table.id, table.role, table.label, table.revoked_at)
        return self._database.found(query.order_by(table.added_at))

    def revoke_key(self, id_: str, now: int) -> bool:
        table = tables.api_key.c
        with changing(self._database) as connection:
            one = update(tables.api_key).where(table.id == id_, table.revoked_at.is_(None)).values(revoked_at=now)
            return connection.execute(one).rowcount == 1
