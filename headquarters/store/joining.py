"""Join codes and joined boxes. A code is valid for one box and the machines named in it."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from sqlalchemy import Connection, RowMapping, delete, select, update

from common.wire.joining import JoinRefusal, hash_of, new_code
from common.wire.keys import verifying_key
from headquarters.core.checks import machine_of
from headquarters.core.nats_accounts import user_of
from headquarters.store import tables
from headquarters.store.register import add_key, revoke_keys
from headquarters.store.revision import RegisterPart, changing

RETENTION_MILLIS = 30 * 86_400_000
"""How long an ended code is still reported as expired or used."""


class JoinRefused(Exception):
    """`machines` are those of the code, if it is for other machines."""

    def __init__(self, reason: JoinRefusal, machines: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.reason: JoinRefusal = reason
        self.machines = machines


class JoinCode(msgspec.Struct, frozen=True, kw_only=True):
    """Times in ms. `used_by` is the public key of the joined box; None while unused."""

    nims: tuple[str, ...]
    label: str
    region: str
    ends_at: int
    created_by: str
    used_by: str | None
    used_at: int | None


class NatsUsers(NamedTuple):
    """Public keys (`U…`) of boxes that the NATS servers accept or reject."""

    valid: frozenset[str]
    revoked: frozenset[str]


class Joining(RegisterPart):
    def make_code(
        self, nims: Sequence[str], *, now: int, ends_at: int, by: str, label: str = "", region: str = ""
    ) -> str:
        """Returns the code, which is shown once. Unused codes for one of these machines expire."""
        code, table = new_code(), tables.join_code
        machines = {machine_of(nim) for nim in nims}
        row = {"nims": msgspec.json.encode(nims).decode(), "label": label, "region": region, "created_by": by}
        with changing(self._database) as connection:
            connection.execute(delete(table).where(table.c.ends_at < now - RETENTION_MILLIS))
            for hashed, terms in _unused(connection, now):
                if machines & {machine_of(nim) for nim in terms.nims}:
                    connection.execute(update(table).where(table.c.hash == hashed).values(ends_at=now))
            connection.execute(table.insert(), {"hash": hash_of(code), "created_at": now, "ends_at": ends_at, **row})
        return code

    def nats_users(self) -> NatsUsers:
        """A user key is revoked if it is valid for no machine, or if one of its machines has a newer key: it would
        give access to another box's subjects."""
        valid: dict[str, set[str]] = {}
        revoked: dict[str, set[str]] = {}
        table = tables.box_key.c
        with self._reading() as connection:
            rows = connection.execute(select(table.machine, table.line, table.revoked_at)).all()
        for machine, line, revoked_at in rows:
            if user := user_of(line):
                (valid if revoked_at is None else revoked).setdefault(user, set()).add(machine)
        active = {machine for machine, _, revoked_at in rows if revoked_at is None}
        out = {user for user, machines in revoked.items() if user not in valid or machines & active}
        return NatsUsers(frozenset(valid) - out, frozenset(out))

    def waiting(self, now: int) -> list[JoinCode]:
        """Unused codes by time of expiry."""
        with self._database.read() as connection:
            return sorted((code for _, code in _unused(connection, now)), key=lambda code: code.ends_at)

    def join(self, code: str, line: str, nims: Sequence[str], now: int) -> JoinCode:
        """Registers these machines for the box with the public key `line` (`whpk_…`); their other keys are revoked.
        Idempotent for the same box. Raises JoinRefused."""
        with self._reading() as connection:  # a wrong code changes nothing and makes no revision
            found = _find(connection, code)
            if _is_joined(connection, found, line, nims, now):
                return found
        key = verifying_key(line)
        named = {name: text for name, text in (("label", found.label), ("region", found.region)) if text}
        keys, codes = tables.box_key.c, tables.join_code.c
        with changing(self._database) as connection:
            found = _find(connection, code)
            if _is_joined(connection, found, line, nims, now):
                return found
            for nim in nims:
                add_key(connection, nim, key.id, line, now, **named)
            revoke_keys(connection, now, keys.machine.in_(map(machine_of, nims)), keys.key_id != key.id)
            used = {"used_by": line, "used_at": now}
            connection.execute(update(tables.join_code).where(codes.hash == hash_of(code)).values(used))
            return msgspec.structs.replace(found, used_by=line, used_at=now)


def _find(connection: Connection, code: str) -> JoinCode:
    table = tables.join_code
    row = connection.execute(select(table).where(table.c.hash == hash_of(code))).mappings().one_or_none()
    if row is None:
        raise JoinRefused("CODE_UNKNOWN")
    return _code_of(row)


def _is_joined(connection: Connection, code: JoinCode, line: str, nims: Sequence[str], now: int) -> bool:
    """Whether this box has already joined with the code. Raises JoinRefused if it may not."""
    machines = {machine_of(nim) for nim in nims}
    if code.used_by not in (None, line):
        raise JoinRefused("CODE_USED")
    if not machines <= {machine_of(nim) for nim in code.nims}:
        raise JoinRefused("OTHER_MACHINES", code.nims)
    table = tables.box_key.c
    query = select(table.machine, table.revoked_at).where(table.key_id == verifying_key(line).id)
    revoked_at = {row.machine: row.revoked_at for row in connection.execute(query)}
    if any(at is not None for at in revoked_at.values()):
        raise JoinRefused("KEY_REVOKED")
    is_joined = code.used_by == line and machines <= set(revoked_at)
    if not is_joined and now >= code.ends_at:
        raise JoinRefused("CODE_EXPIRED")
    return is_joined


def _unused(connection: Connection, now: int) -> list[tuple[str, JoinCode]]:
    table = tables.join_code.c
    rows = connection.execute(select(tables.join_code).where(table.used_by.is_(None), table.ends_at > now)).mappings()
    return [(row["hash"], _code_of(row)) for row in rows]


def _code_of(row: RowMapping) -> JoinCode:
    named = {name: row[name] for name in JoinCode.__struct_fields__ if name != "nims"}
    return JoinCode(nims=msgspec.json.decode(row["nims"], type=tuple[str, ...]), **named)
