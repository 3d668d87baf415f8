"""The register: which boxes there are, what verifies their signatures, who may look. Each change counts its revision up.

It is all that headquarters cannot ask the boxes for again, so it can be written to a file and read back (`to_copy`, `from_copy`)."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, Select, Table, delete, exists, func, or_, select, update

from exchange.closure import Id, Nim
from exchange.keys import VerifyingKey, verifying_key
from headquarters.core.held import machine_of
from headquarters.store import tables
from headquarters.store.book.books import take_back
from headquarters.store.book.withdrawal import withdraw
from headquarters.store.bulk import insert_new, write_all
from headquarters.store.database import READ_AT_ONCE, Database

COPIED: tuple[Table, ...] = (tables.box, tables.box_key, tables.ledger, tables.person, tables.api_key)
OF_A_LEDGER = ("gap", "fork", "chain")
"""Kinds of findings that end with the ledger they are about."""
_ID = re.compile(next(part.pattern for part in Id.__metadata__ if part.pattern))  # type: ignore[attr-defined]  # as below
_NIM = re.compile(next(part.pattern for part in Nim.__metadata__ if part.pattern))  # type: ignore[attr-defined]  # Annotated


_REVISION = select(tables.meta.c.value).where(tables.meta.c.name == "revision")


class StaleRing(Exception):
    """Keys were added or revoked since these signatures were looked at: look again."""


class Box(msgspec.Struct, frozen=True, kw_only=True):
    """`closes_at` is the minute of the day set by a person, `usual_at` the one learnt, counted from 04:00."""

    machine: str
    nim: str
    label: str
    region: str
    closes_at: int | None
    usual_at: int | None
    usual_days: int
    added_at: int


class BoxKey(msgspec.Struct, frozen=True, kw_only=True):
    machine: str
    key_id: str
    line: str
    added_at: int
    revoked_at: int | None
    stolen_since: int | None


class AcceptedLedger(msgspec.Struct, frozen=True, kw_only=True):
    machine: str
    ledger_id: str
    accepted_at: int
    accepted_by: str


class Copy(msgspec.Struct, frozen=True):
    """The register as a file: JSON, rows as they stand in the tables, each decoded when it is needed."""

    revision: int
    rows: dict[str, list[msgspec.Raw]]


class Ring:
    """The keys of one revision, in memory."""

    def __init__(self, revision: int, keys: Iterable[BoxKey]) -> None:
        self.revision = revision
        self._keys: dict[str, list[VerifyingKey]] = {}
        self._owners: dict[str, str] = {}
        for key in keys:
            self._owners.setdefault(key.key_id, key.machine)
            if key.revoked_at is None:
                self._keys.setdefault(key.machine, []).append(verifying_key(key.line))

    def keys_of(self, machine: str) -> Sequence[VerifyingKey]:
        return self._keys.get(machine, ())

    def owner(self, key_id: str) -> str | None:
        return self._owners.get(key_id)


class Register:
    def __init__(self, database: Database) -> None:
        self._database = database

    def revision(self) -> int:
        with self._database.read() as connection:
            return revision_of(connection)

    def identity(self) -> str:
        """Of this database, for as long as it lives; a new one when it is made anew."""
        with self._database.write() as connection:
            insert_new(connection, tables.meta, [{"name": "identity", "value": uuid.uuid4().hex}])
            return str(connection.scalar(select(tables.meta.c.value).where(tables.meta.c.name == "identity")))

    def ring(self) -> Ring:
        with self._database.read() as connection:
            # First: keys that are newer than it are looked at again, older ones never.
            revision = revision_of(connection)
            keys = connection.execute(_streamed(tables.box_key)).mappings()
            return Ring(revision, (BoxKey(**row) for row in keys))

    def add(self, nim: str, line: str, *, now: int, label: str = "", region: str = "") -> str:
        """Another key for that box, which is made when there is none; the key's id. ValueError for a NIM or key that is none.
        The same key again is valid again."""
        if _NIM.fullmatch(nim) is None:
            raise ValueError(f"{nim} is not a NIM")
        machine, key = machine_of(nim), verifying_key(line)
        with self._database.write() as connection:
            row = {
                "label": label,
                "region": region,
                "closes_at": None,
                "usual_at": None,
                "usual_days": 0,
                "added_at": now,
            }
            insert_new(connection, tables.box, [{"machine": machine, "nim": nim, **row}])
            named = {name: text for name, text in (("label", label), ("region", region)) if text}
            connection.execute(update(tables.box).where(tables.box.c.machine == machine).values(nim=nim, **named))
            insert_new(
                connection, tables.box_key, [{"machine": machine, "key_id": key.id, "line": line, "added_at": now}]
            )
            table = tables.box_key.c
            one = (table.machine == machine, table.key_id == key.id)
            connection.execute(update(tables.box_key).where(*one).values(revoked_at=None, stolen_since=None))
            count_up(connection)
        return key.id

    def revoke(self, machine: str, key_id: str, now: int) -> bool:
        """From the next message on, and what a box has said under it alone is taken back; False when there is no such key that is valid."""
        table = tables.box_key.c
        one = (table.machine == machine, table.key_id == key_id, table.revoked_at.is_(None))
        with self._database.write() as connection:
            # First: no word that this key has signed is on its way any more.
            count_up(connection)
            done = connection.execute(update(tables.box_key).where(*one).values(revoked_at=now)).rowcount == 1
            if done:
                take_back(connection, machine, key_id, now)
            return done

    def withdraw(self, machine: str, key_id: str, since: int, now: int) -> int | None:
        """What headquarters got under that key from `since` on (ms) was perhaps not the box's: it is taken out of the table, and the box asked for
        it. How many closures that were; None when that box has no such key, or it was not revoked."""
        table = tables.box_key.c
        one = (table.machine == machine, table.key_id == key_id, table.revoked_at.is_not(None))
        with self._database.write() as connection:
            count_up(connection)
            done = connection.execute(update(tables.box_key).where(*one).values(stolen_since=since)).rowcount == 1
            return withdraw(connection, machine, key_id, since, now) if done else None

    def accept_ledger(self, machine: str, ledger_id: str, who: str, now: int) -> bool:
        """The box goes on with that ledger: the one before is lost. What was found of that one is solved by it; False when there is no such
        box, ValueError for an id that is none. The book follows from the next closure or presence on."""
        if _ID.fullmatch(ledger_id) is None:
            raise ValueError(f"{ledger_id} is not the id of a ledger")
        row = {"machine": machine, "ledger_id": ledger_id, "accepted_at": now, "accepted_by": who}
        table = tables.finding.c
        lost = (table.machine == machine, table.kind.in_(OF_A_LEDGER), table.solved_at.is_(None))
        with self._database.write() as connection:
            if connection.scalar(select(tables.box.c.machine).where(tables.box.c.machine == machine)) is None:
                return False
            write_all(connection, tables.ledger, [row], replaced=("accepted_at", "accepted_by"))
            solved = {"solved_at": now, "solved_by": who, "note": f"ledger {ledger_id} accepted"}
            connection.execute(update(tables.finding).where(*lost).values(solved))
            count_up(connection)
            return True

    def ledgers(self, machine: str) -> list[AcceptedLedger]:
        """Those that somebody has accepted in the place of one that was lost, newest first."""
        table = tables.ledger.c
        query = select(tables.ledger).where(table.machine == machine).order_by(table.accepted_at.desc())
        with self._database.read() as connection:
            return [AcceptedLedger(**row) for row in connection.execute(query).mappings()]

    def set_closing(self, machine: str, minute: int | None) -> bool:
        """When that shop usually closes, in minutes of the day; None to learn it."""
        with self._database.write() as connection:
            one = update(tables.box).where(tables.box.c.machine == machine).values(closes_at=minute)
            count_up(connection)
            return connection.execute(one).rowcount == 1

    def boxes(self, region: str | None = None) -> list[Box]:
        query = select(tables.box).order_by(tables.box.c.machine)
        if region is not None:
            query = query.where(tables.box.c.region == region)
        with self._database.read() as connection:
            return [Box(**row) for row in connection.execute(query).mappings()]

    def some(self, region: str | None, skip: int, most: int) -> tuple[list[Box], int]:
        """A page of them, by region and label, and how many there are in all."""
        table = tables.box.c
        of_region = [] if region is None else [table.region == region]
        query = select(tables.box).where(*of_region).order_by(table.region, table.machine).offset(skip).limit(most)
        with self._database.read() as connection:
            count = connection.scalar(select(func.count()).select_from(tables.box).where(*of_region))
            return [Box(**row) for row in connection.execute(query).mappings()], int(count or 0)

    def box(self, machine: str) -> Box | None:
        with self._database.read() as connection:
            row = connection.execute(select(tables.box).where(tables.box.c.machine == machine)).mappings().one_or_none()
            return Box(**row) if row is not None else None

    def regions(self) -> list[str]:
        table = tables.box.c
        with self._database.read() as connection:
            query = select(table.region).distinct().where(table.region != "").order_by(table.region)
            return [str(region) for region in connection.scalars(query)]

    def keys(self, machine: str) -> list[BoxKey]:
        query = select(tables.box_key).where(tables.box_key.c.machine == machine).order_by(tables.box_key.c.added_at)
        with self._database.read() as connection:
            return [BoxKey(**row) for row in connection.execute(query).mappings()]

    def to_copy(self) -> Iterator[bytes]:
        """A `Copy`, in pieces: of ten thousands of boxes it is larger than all else that is held here."""
        with self._database.read() as connection:
            yield b'{"revision":%d,"rows":{' % revision_of(connection)
            for number, table in enumerate(COPIED):
                yield b'%s"%s":[' % (b"," if number else b"", table.name.encode())
                rows = connection.execute(_streamed(table)).mappings()
                for count, row in enumerate(rows):
                    yield (b",\n" if count else b"") + msgspec.json.encode(dict(row))
                yield b"]"
            yield b"}}"

    def from_copy(self, copy: Copy, now: int) -> bool:
        """Takes it when it is newer than what the database has: the database was put back, or is a new one."""
        with self._database.write() as connection:
            if copy.revision <= revision_of(connection):
                return False
            for table in COPIED:
                connection.execute(delete(table))
                for some in _parts(copy.rows.get(table.name, [])):
                    connection.execute(table.insert(), [msgspec.json.decode(row) for row in some])
            count_up(connection, copy.revision)
            for machine, key_id in connection.execute(_revoked_that_spoke()).all():
                take_back(connection, machine, key_id, now)
            for machine, key_id, since in connection.execute(_stolen()).all():
                withdraw(connection, machine, key_id, since, now)
            return True


def _streamed(table: Table) -> Select[Any]:
    return select(table).execution_options(yield_per=READ_AT_ONCE)


def _parts(rows: Sequence[msgspec.Raw]) -> Iterator[Sequence[msgspec.Raw]]:
    for first in range(0, len(rows), READ_AT_ONCE):
        yield rows[first : first + READ_AT_ONCE]


def _revoked_that_spoke() -> Select[Any]:
    """Keys under which something was said last, and which were revoked since."""
    key, book, word = tables.box_key.c, tables.book.c, tables.presence.c
    spoke = or_(
        exists().where(book.machine == key.machine, book.told_by == key.key_id),
        exists().where(word.machine == key.machine, word.key_id == key.key_id),
    )
    return select(key.machine, key.key_id).where(key.revoked_at.is_not(None), spoke)


def _stolen() -> Select[Any]:
    key = tables.box_key.c
    return select(key.machine, key.key_id, key.stolen_since).where(key.stolen_since.is_not(None))


def hold_revision(connection: Connection, looked_with: int | None) -> None:
    """StaleRing unless the keys are those of that revision, and none is added or revoked before this transaction ends."""
    if looked_with is None:
        return
    held = connection.scalar(_REVISION.with_for_update(read=True))
    if int(held or 0) != looked_with:
        raise StaleRing


def revision_of(connection: Connection) -> int:
    return int(connection.scalar(_REVISION) or 0)


def count_up(connection: Connection, to: int | None = None) -> None:
    """Also when nothing changed: the price is one more look at the keys."""
    insert_new(connection, tables.meta, [{"name": "revision", "value": "0"}])
    value = to if to is not None else int(connection.scalar(_REVISION.with_for_update()) or 0) + 1
    connection.execute(update(tables.meta).where(tables.meta.c.name == "revision").values(value=str(value)))
