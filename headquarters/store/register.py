"""The register: boxes, their keys and names, people. Each change makes a new revision.

Headquarters cannot get this data from the boxes again, so it can be copied to a file and merged back (`copied`,
`from_copy`)."""

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Row, Select, Table, delete, exists, func, or_, select, update

from common.wire.closure import Id, Nim
from common.wire.keys import verifying_key
from headquarters.core.checks import machine_of
from headquarters.core.reception import KeysOfRevision, RegisteredKey
from headquarters.core.register_merge import MERGED, RegisterRow
from headquarters.store import tables
from headquarters.store.book.books import reset_requests, withdraw_statements
from headquarters.store.book.closures import withdraw
from headquarters.store.database import READ_AT_ONCE, insert_new, parts, upsert
from headquarters.store.findings import PASSED
from headquarters.store.revision import (
    RegisterPart,
    after,
    changing,
    check_descent,
    count_up,
    lock_exclusively,
    revision_of,
)

MAX_NAME = 64
COPIED: tuple[Table, ...] = tuple(tables.metadata.tables[name] for name in MERGED)
OF_A_LEDGER = ("gap", "fork", "chain")
"""Findings that end with their ledger."""
_ID = re.compile(next(part.pattern for part in Id.__metadata__ if part.pattern))  # type: ignore[attr-defined]  # as below
_NIM = re.compile(next(part.pattern for part in Nim.__metadata__ if part.pattern))  # type: ignore[attr-defined]  # Annotated
_OF_PRESENCE = ("late", "tax-server", "version", "clock", "deferred", "clone")
"""Findings without meaning for a retired shop."""


class RegisteredBox(msgspec.Struct, frozen=True, kw_only=True):
    """`closes_at`, set by a person, is a minute of the day; `usual_at`, learnt, is counted from 04:00."""

    machine: str
    nim: str
    label: str
    region: str
    closes_at: int | None
    usual_at: int | None
    usual_days: int
    added_at: int
    changed_at: int | None = None
    """ms, of the last change by a person"""
    retired_at: int | None = None
    """ms; None while the shop is open"""


class RegisterContent(msgspec.Struct, frozen=True):
    """The register as a JSON file; rows of the tables, decoded one by one when needed."""

    revision: int
    rows: dict[str, list[msgspec.Raw]]


class Register(RegisterPart):
    def revision(self) -> int:
        with self._reading() as connection:
            return revision_of(connection)

    def ring(self) -> KeysOfRevision:
        with self._reading() as connection:
            # Read first: keys newer than the revision are read again, older ones would never be.
            revision = revision_of(connection)
            keys = connection.execute(select(tables.box_key).execution_options(yield_per=READ_AT_ONCE)).mappings()
            return KeysOfRevision(revision, (RegisteredKey(**row) for row in keys))

    def add(self, nim: str, line: str, *, now: int, label: str = "", region: str = "") -> str:
        """Adds a key of the box, and the box if it is new; makes a revoked key valid again. Returns the key's id.
        Raises ValueError for an invalid NIM or key."""
        if not is_nim(nim):
            raise ValueError(f"{nim} is not a NIM")
        key = verifying_key(line)
        named = {name: text for name, text in (("label", label), ("region", region)) if text}
        with changing(self._database) as connection:
            add_key(connection, nim, key.id, line, now, **named)
        return key.id

    def revoke(self, machine: str, key_id: str, now: int) -> bool:
        """Revokes a key from the next message on, and discards statements that only this key signed. False if the box
        has no such valid key."""
        table = tables.box_key.c
        with changing(self._database) as connection:
            return bool(revoke_keys(connection, now, table.machine == machine, table.key_id == key_id))

    def revoke_box(self, machine: str, now: int) -> list[str]:
        """Revokes all keys of the box for all its machines, so that no signature of it is accepted. Returns their ids;
        empty if none was valid."""
        table = tables.box_key.c
        with changing(self._database) as connection:
            mine = select(table.key_id).where(table.machine == machine, table.revoked_at.is_(None))
            return sorted({key_id for _, key_id in revoke_keys(connection, now, table.key_id.in_(mine))})

    def retire(self, machine: str, now: int) -> bool:
        """Closes a shop for good: revokes its keys and removes it from lists and alarms. Its closures and name remain.
        False if there is no such open shop. Adding it again reopens it."""
        findings = tables.finding.c
        still = (findings.machine == machine, findings.kind.in_(_OF_PRESENCE), findings.solved_at.is_(None))
        with changing(self._database) as connection:
            is_open = (tables.box.c.machine == machine, tables.box.c.retired_at.is_(None))
            if connection.scalar(select(tables.box.c.machine).where(*is_open)) is None:
                return False
            _change_box(connection, machine, now, retired_at=now)
            _revoke(connection, now, tables.box_key.c.machine == machine)
            solved = {"solved_at": now, "solved_by": "", "note": "shop retired"}
            connection.execute(update(tables.finding).where(*still).values(solved))
            return True

    def withdraw(self, machine: str, key_id: str, since: int, now: int) -> int | None:
        """Withdraws closures received under a stolen key since `since` (ms); the box sends its own again. Returns
        their number; None if the box has no such key or it is not revoked."""
        table = tables.box_key.c
        one = (table.machine == machine, table.key_id == key_id, table.revoked_at.is_not(None))
        with changing(self._database) as connection:
            done = connection.execute(update(tables.box_key).where(*one).values(stolen_since=since)).rowcount == 1
            return withdraw(connection, machine, key_id, since, now) if done else None

    def accept_ledger(self, machine: str, ledger_id: str, who: str, now: int) -> bool:
        """Accepts a new ledger in place of a lost one and solves the findings about the lost one. The book follows it
        from the next closure or presence on. False if the box is unknown; ValueError for an invalid id."""
        if _ID.fullmatch(ledger_id) is None:
            raise ValueError(f"{ledger_id} is not the id of a ledger")
        table = tables.finding.c
        lost = (table.machine == machine, table.kind.in_(OF_A_LEDGER), table.solved_at.is_(None))
        with changing(self._database) as connection:
            if connection.scalar(select(tables.box.c.machine).where(tables.box.c.machine == machine)) is None:
                return False
            last = connection.scalar(
                select(func.max(tables.ledger.c.accepted_at)).where(tables.ledger.c.machine == machine)
            )
            # The newest is valid, whatever the clock showed at an earlier one.
            at = max(now, (last or 0) + 1)
            row = {"machine": machine, "ledger_id": ledger_id, "accepted_at": at, "accepted_by": who}
            upsert(connection, tables.ledger, [row], replaced=("accepted_at", "accepted_by"))
            solved = {"solved_at": now, "solved_by": who, "note": f"ledger {ledger_id} accepted", "key": PASSED}
            connection.execute(update(tables.finding).where(*lost).values(solved))
            reset_requests(connection, machine)
            return True

    def ledgers(self, machine: str) -> Sequence[Row[Any]]:
        """Accepted ledgers, newest first."""
        table = tables.ledger.c
        query = select(tables.ledger).where(table.machine == machine).order_by(table.accepted_at.desc())
        return self._database.found(query)

    def change(self, machine: str, now: int, **values: str | int | None) -> bool:
        """Changes `label`, `region`, or `closes_at` (minutes of the day; None to learn it). False if the box is
        unknown."""
        with changing(self._database) as connection:
            return _change_box(connection, machine, now, **values)

    def boxes(self, region: str | None = None) -> list[RegisteredBox]:
        """Includes retired shops."""
        query = select(tables.box).order_by(tables.box.c.machine)
        if region is not None:
            query = query.where(tables.box.c.region == region)
        return self._database.rows(RegisteredBox, query)

    def some(
        self, region: str | None, page: int, most: int, since: int | None = None
    ) -> tuple[list[RegisteredBox], int, int]:
        """A page of boxes by region and machine, their total number, and the page's number, which is at most the last.
        With `since` (ms) it includes shops that were open then or later."""
        table = tables.box.c
        wanted = [
            table.retired_at.is_(None) if since is None else or_(table.retired_at.is_(None), table.retired_at >= since)
        ]
        wanted += [] if region is None else [table.region == region]
        query = select(tables.box).where(*wanted).order_by(table.region, table.machine)
        with self._database.read() as connection:
            count = connection.scalar(select(func.count()).select_from(tables.box).where(*wanted)) or 0
            page = min(page, max(0, count - 1) // most)
            rows = connection.execute(query.offset(page * most).limit(most)).mappings()
            return [RegisteredBox(**row) for row in rows], count, page

    def box(self, machine: str) -> RegisteredBox | None:
        found = self._database.rows(RegisteredBox, select(tables.box).where(tables.box.c.machine == machine))
        return found[0] if found else None

    def regions(self) -> list[str]:
        table = tables.box.c
        query = select(table.region).distinct().where(table.region != "").order_by(table.region)
        return [row.region for row in self._database.found(query)]

    def keys(self, machine: str) -> list[RegisteredKey]:
        query = select(tables.box_key).where(tables.box_key.c.machine == machine).order_by(tables.box_key.c.added_at)
        return self._database.rows(RegisteredKey, query)

    @contextlib.contextmanager
    def copied(self, since: int = 0) -> Iterator[tuple[int, Iterator[bytes]]]:
        """The revision and the pieces of a `RegisterContent`, streamed because of its size. Raises RevisionLost if the
        database does not descend from revision `since`."""
        with self._database.read() as connection:
            revision = check_descent(connection, since)
            yield revision, _pieces(connection, revision)

    def from_copy(self, copy: RegisterContent, now: int) -> bool:
        """Merges the copy row by row (`core.register_merge`), so that the order of the two does not matter. False if
        nothing was new to the database."""
        with self._database.write() as connection:
            lock_exclusively(connection)
            is_newer = copy.revision > revision_of(connection)
            count_up(connection, copy.revision)
            changed = False
            for table in COPIED:
                for some in parts(copy.rows.get(table.name, [])):
                    rows = [msgspec.json.decode(row, type=RegisterRow) for row in some]
                    changed = _merge(connection, table, rows, is_newer=is_newer) or changed
            if changed:
                connection.execute(update(tables.book).values(requests=None))
            connection.execute(delete(tables.session))  # an ended one may have come back
            for machine, key_id in connection.execute(_revoked_signers()).all():
                withdraw_statements(connection, machine, key_id, now)
            key = tables.box_key.c
            stolen = select(key.machine, key.key_id, key.stolen_since).where(key.stolen_since.is_not(None))
            for machine, key_id, since in connection.execute(stolen).all():
                withdraw(connection, machine, key_id, since, now)
            return changed or is_newer


def is_nim(text: str) -> bool:
    return _NIM.fullmatch(text) is not None


def is_name(text: str) -> bool:
    """Of a person, shop or region; the answer to a joining box limits the length."""
    return text.isprintable() and len(text) <= MAX_NAME and text == text.strip()


def add_key(connection: Connection, nim: str, key_id: str, line: str, now: int, **named: str) -> None:
    """Makes the key valid for the box, which is created or reopened. `named` are its label and region, if given."""
    machine = machine_of(nim)
    row = {"closes_at": None, "usual_at": None, "usual_days": 0, "added_at": now}
    insert_new(connection, tables.box, [{"machine": machine, "nim": nim, "label": "", "region": "", **row}])
    _change_box(connection, machine, now, nim=nim, retired_at=None, **named)
    insert_new(connection, tables.box_key, [{"machine": machine, "key_id": key_id, "line": line, "added_at": now}])
    table = tables.box_key.c
    revoked = (table.machine == machine, table.key_id == key_id, table.revoked_at.is_not(None))
    again = {"restored": table.revoked_at, "revoked_at": None, "stolen_since": None}
    connection.execute(update(tables.box_key).where(*revoked).values(again))
    reset_requests(connection, machine)


def revoke_keys(connection: Connection, now: int, *which: ColumnElement[bool]) -> list[tuple[str, str]]:
    """Like `_revoke`, and discards statements that only these keys signed."""
    found = _revoke(connection, now, *which)
    for machine, key_id in found:
        withdraw_statements(connection, machine, key_id, now)
        reset_requests(connection, machine)
    return found


def _pieces(connection: Connection, revision: int) -> Iterator[bytes]:
    yield b'{"revision":%d,"rows":{' % revision
    for number, table in enumerate(COPIED):
        yield b'%s"%s":[' % (b"," if number else b"", table.name.encode())
        rows = connection.execute(select(table).execution_options(yield_per=READ_AT_ONCE)).mappings()
        for count, row in enumerate(rows):
            yield (b",\n" if count else b"") + msgspec.json.encode(dict(row))
        yield b"]"
    yield b"}}"


def _merge(connection: Connection, table: Table, rows: Sequence[RegisterRow], *, is_newer: bool) -> bool:
    """True if any row has changed."""
    names, key = [column.name for column in table.columns], [column.name for column in table.primary_key]
    first = table.c[key[0]]
    found = connection.execute(select(table).where(first.in_({row[key[0]] for row in rows}))).mappings()
    stored = {tuple(row[name] for name in key): dict(row) for row in found}
    changed = []
    for row in rows:
        theirs = {name: row.get(name) for name in names}
        ours = stored.get(tuple(row[name] for name in key))
        merge = MERGED[table.name]
        merged = theirs if ours is None else merge(theirs, ours) if is_newer else merge(ours, theirs)
        if merged != ours:
            changed.append(merged)
    upsert(connection, table, changed, replaced=[name for name in names if name not in key])
    return bool(changed)


def _change_box(connection: Connection, machine: str, now: int, **values: object) -> bool:
    table = tables.box.c
    changed_at = after(table.changed_at, now)
    one = update(tables.box).where(table.machine == machine).values(changed_at=changed_at, **values)
    return connection.execute(one).rowcount == 1


def _revoke(connection: Connection, now: int, *which: ColumnElement[bool]) -> list[tuple[str, str]]:
    """Revokes the valid ones of these keys. Returns machine and id of each."""
    table = tables.box_key.c
    valid = update(tables.box_key).where(*which, table.revoked_at.is_(None))
    revoking = valid.values(revoked_at=after(table.restored, now)).returning(table.machine, table.key_id)
    return sorted((machine, key_id) for machine, key_id in connection.execute(revoking))


def _revoked_signers() -> Select[Any]:
    """Revoked keys that signed a stored statement."""
    key, book, presence = tables.box_key.c, tables.book.c, tables.presence.c
    spoke = or_(
        exists().where(book.machine == key.machine, book.last_z_key == key.key_id),
        exists().where(presence.machine == key.machine, presence.key_id == key.key_id),
    )
    return select(key.machine, key.key_id).where(key.revoked_at.is_not(None), spoke)
