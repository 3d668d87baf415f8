"""The register: which boxes there are, what verifies their signatures, who may look. Each change counts its revision up.

It is all that headquarters cannot ask the boxes for again, so it can be written to a file and read back (`copied`, `from_copy`)."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Row, Select, Table, and_, delete, exists, func, or_, select, update

from common.wire.closure import Id, Nim
from common.wire.keys import verifying_key
from headquarters.core.checks import machine_of
from headquarters.core.reception import KeysOfRevision, RegisteredKey
from headquarters.core.register_merge import MERGED, RegisterRow
from headquarters.store import tables
from headquarters.store.book.books import ask_anew, withdraw_statements
from headquarters.store.book.closures import withdraw
from headquarters.store.database import READ_AT_ONCE, insert_new, parts, upsert
from headquarters.store.findings import PASSED
from headquarters.store.revision import RegisterPart, after, be_alone, changing, check_descent, count_up, revision_of

MOST_NAME = 64
COPIED: tuple[Table, ...] = tuple(tables.metadata.tables[name] for name in MERGED)
OF_A_LEDGER = ("gap", "fork", "chain")
"""Kinds of findings that end with the ledger they are about."""
_ID = re.compile(next(part.pattern for part in Id.__metadata__ if part.pattern))  # type: ignore[attr-defined]  # as below
_NIM = re.compile(next(part.pattern for part in Nim.__metadata__ if part.pattern))  # type: ignore[attr-defined]  # Annotated
_OF_PRESENCE = ("late", "tax-server", "version", "clock", "deferred", "clone")
"""Kinds without a meaning for a shop that is closed for good."""


class RegisteredBox(msgspec.Struct, frozen=True, kw_only=True):
    """`closes_at` is the minute of the day set by a person, `usual_at` the one learnt, counted from 04:00."""

    machine: str
    nim: str
    label: str
    region: str
    closes_at: int | None
    usual_at: int | None
    usual_days: int
    added_at: int
    changed_at: int | None = None
    """ms, when a person has changed it last"""
    retired_at: int | None = None
    """ms; None while the shop is open"""


class RegisterContent(msgspec.Struct, frozen=True):
    """The register as a file: JSON, rows as they stand in the tables, each decoded when it is needed."""

    revision: int
    rows: dict[str, list[msgspec.Raw]]


class Register(RegisterPart):
    def revision(self) -> int:
        with self.settled.reading() as connection:
            return revision_of(connection)

    def ring(self) -> KeysOfRevision:
        with self.settled.reading() as connection:
            # First: keys that are newer than it are looked at again, older ones never.
            revision = revision_of(connection)
            keys = connection.execute(_streamed(tables.box_key)).mappings()
            return KeysOfRevision(revision, (RegisteredKey(**row) for row in keys))

    def add(self, nim: str, line: str, *, now: int, label: str = "", region: str = "") -> str:
        """Another key for that box, which is made when there is none; the key's id. ValueError for a NIM or key that is none.
        The same key again is valid again."""
        if not is_nim(nim):
            raise ValueError(f"{nim} is not a NIM")
        key = verifying_key(line)
        named = {name: text for name, text in (("label", label), ("region", region)) if text}
        with changing(self._database) as connection:
            add_key(connection, nim, key.id, line, now, **named)
        return key.id

    def revoke(self, machine: str, key_id: str, now: int) -> bool:
        """From the next message on, and what a box has said under it alone is taken back; False when there is no such key that is valid."""
        table = tables.box_key.c
        one = (table.machine == machine, table.key_id == key_id, table.revoked_at.is_(None))
        with changing(self._database) as connection:
            done = _revoke(connection, and_(*one), now)
            if done:
                withdraw_statements(connection, machine, key_id, now)
                ask_anew(connection, machine)
            return bool(done)

    def revoke_box(self, machine: str, now: int) -> list[str]:
        """All keys of that box, for each of its machines: it is cut off, whatever it signs with. Their ids; empty when it has no valid one."""
        table = tables.box_key.c
        with changing(self._database) as connection:
            mine = select(table.key_id).where(table.machine == machine, table.revoked_at.is_(None))
            ids = sorted(connection.scalars(mine))
            revoke_keys(connection, and_(table.key_id.in_(ids), table.revoked_at.is_(None)), now)
            return ids

    def retire(self, machine: str, now: int) -> bool:
        """The shop is closed for good: its keys are revoked, it is not missed, and it is in no list. Its closures stay, with its name. False
        when there is no such box that is open. To add it again opens it again."""
        keys, findings = tables.box_key.c, tables.finding.c
        still = and_(findings.machine == machine, findings.kind.in_(_OF_PRESENCE), findings.solved_at.is_(None))
        with changing(self._database) as connection:
            is_open = (tables.box.c.machine == machine, tables.box.c.retired_at.is_(None))
            if connection.scalar(select(tables.box.c.machine).where(*is_open)) is None:
                return False
            _change_box(connection, machine, now, retired_at=now)
            _revoke(connection, and_(keys.machine == machine, keys.revoked_at.is_(None)), now)
            solved = {"solved_at": now, "solved_by": "", "note": "shop retired"}
            connection.execute(update(tables.finding).where(still).values(solved))
            return True

    def withdraw(self, machine: str, key_id: str, since: int, now: int) -> int | None:
        """What headquarters got under that key from `since` on (ms) was perhaps not the box's: it is taken out of the table, and the box sends
        it. How many closures that were; None when that box has no such key, or it was not revoked."""
        table = tables.box_key.c
        one = (table.machine == machine, table.key_id == key_id, table.revoked_at.is_not(None))
        with changing(self._database) as connection:
            done = connection.execute(update(tables.box_key).where(*one).values(stolen_since=since)).rowcount == 1
            return withdraw(connection, machine, key_id, since, now) if done else None

    def accept_ledger(self, machine: str, ledger_id: str, who: str, now: int) -> bool:
        """The box goes on with that ledger: the one before is lost. What was found of that one is solved by it; False when there is no such
        box, ValueError for an id that is none. The book follows from the next closure or presence on."""
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
            # The newest counts, whatever the clock was at the one before.
            at = max(now, (last or 0) + 1)
            row = {"machine": machine, "ledger_id": ledger_id, "accepted_at": at, "accepted_by": who}
            upsert(connection, tables.ledger, [row], replaced=("accepted_at", "accepted_by"))
            solved = {"solved_at": now, "solved_by": who, "note": f"ledger {ledger_id} accepted", "key": PASSED}
            connection.execute(update(tables.finding).where(*lost).values(solved))
            ask_anew(connection, machine)
            return True

    def ledgers(self, machine: str) -> Sequence[Row[Any]]:
        """Those that were accepted in the place of a lost one, newest first."""
        table = tables.ledger.c
        query = select(tables.ledger).where(table.machine == machine).order_by(table.accepted_at.desc())
        return self._database.found(query)

    def set_closing(self, machine: str, minute: int | None, now: int = 0) -> bool:
        """When that shop usually closes, in minutes of the day; None to learn it."""
        with changing(self._database) as connection:
            return _change_box(connection, machine, now, closes_at=minute)

    def boxes(self, region: str | None = None) -> list[RegisteredBox]:
        """Also those of shops that are closed for good."""
        query = select(tables.box).order_by(tables.box.c.machine)
        if region is not None:
            query = query.where(tables.box.c.region == region)
        return self._database.rows(RegisteredBox, query)

    def some(
        self, region: str | None, page: int, most: int, since: int | None = None
    ) -> tuple[list[RegisteredBox], int, int]:
        """A page of them, by region and machine; how many there are in all, and which page it is: the last when there are not so many. With those
        that were open at `since` (ms) or later."""
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
        with self._database.read() as connection:
            query = select(table.region).distinct().where(table.region != "").order_by(table.region)
            return [str(region) for region in connection.scalars(query)]

    def keys(self, machine: str) -> list[RegisteredKey]:
        query = select(tables.box_key).where(tables.box_key.c.machine == machine).order_by(tables.box_key.c.added_at)
        return self._database.rows(RegisteredKey, query)

    @contextlib.contextmanager
    def copied(self, since: int = 0) -> Iterator[tuple[int, Iterator[bytes]]]:
        """The revision of a `RegisterContent`, and its pieces: of ten thousands of boxes it is larger than all else that is held here. PutBack when the
        database has not come from the revision `since`."""
        with self._database.read() as connection:
            revision = check_descent(connection, since)
            yield revision, _pieces(connection, revision)

    def from_copy(self, copy: RegisterContent, now: int) -> bool:
        """What the copy knows comes to what the database has, row by row (`core.register_merge`), so that it does not matter which of them is
        newer. False when there was nothing that the database did not know."""
        with self._database.write() as connection:
            be_alone(connection)
            is_newer = copy.revision > revision_of(connection)
            count_up(connection, copy.revision)
            changed = False
            for table in COPIED:
                for some in parts(copy.rows.get(table.name, [])):
                    rows = [msgspec.json.decode(row, type=RegisterRow) for row in some]
                    changed = _merge(connection, table, rows, is_newer=is_newer) or changed
            if changed:
                connection.execute(update(tables.book).values(asked=None))
            connection.execute(delete(tables.session))  # one that was ended may be there again
            for machine, key_id in connection.execute(_revoked_that_spoke()).all():
                withdraw_statements(connection, machine, key_id, now)
            key = tables.box_key.c
            stolen = select(key.machine, key.key_id, key.stolen_since).where(key.stolen_since.is_not(None))
            for machine, key_id, since in connection.execute(stolen).all():
                withdraw(connection, machine, key_id, since, now)
            return changed or is_newer


def is_nim(text: str) -> bool:
    return _NIM.fullmatch(text) is not None


def is_name(text: str) -> bool:
    """Of a person, a shop or a region; an answer to a box that joins takes no longer ones."""
    return text.isprintable() and len(text) <= MOST_NAME


def add_key(connection: Connection, nim: str, key_id: str, line: str, now: int, **named: str) -> None:
    """The key is valid for that box, which is made, or opened again; `named`: its label and its region, where they are said."""
    machine = machine_of(nim)
    row = {"closes_at": None, "usual_at": None, "usual_days": 0, "added_at": now}
    insert_new(connection, tables.box, [{"machine": machine, "nim": nim, "label": "", "region": "", **row}])
    _change_box(connection, machine, now, nim=nim, retired_at=None, **named)
    insert_new(connection, tables.box_key, [{"machine": machine, "key_id": key_id, "line": line, "added_at": now}])
    table = tables.box_key.c
    revoked = (table.machine == machine, table.key_id == key_id, table.revoked_at.is_not(None))
    again = {"restored": table.revoked_at, "revoked_at": None, "stolen_since": None}
    connection.execute(update(tables.box_key).where(*revoked).values(again))
    ask_anew(connection, machine)


def revoke_keys(connection: Connection, which: ColumnElement[bool], now: int) -> None:
    """Each of those, with what was said under it alone."""
    table = tables.box_key.c
    found = connection.execute(select(table.machine, table.key_id).where(which)).all()
    _revoke(connection, which, now)
    for machine, key_id in found:
        withdraw_statements(connection, machine, key_id, now)
        ask_anew(connection, machine)


def _pieces(connection: Connection, revision: int) -> Iterator[bytes]:
    yield b'{"revision":%d,"rows":{' % revision
    for number, table in enumerate(COPIED):
        yield b'%s"%s":[' % (b"," if number else b"", table.name.encode())
        rows = connection.execute(_streamed(table)).mappings()
        for count, row in enumerate(rows):
            yield (b",\n" if count else b"") + msgspec.json.encode(dict(row))
        yield b"]"
    yield b"}}"


def _merge(connection: Connection, table: Table, rows: Sequence[RegisterRow], *, is_newer: bool) -> bool:
    """Whether any has changed the database."""
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


def _revoke(connection: Connection, which: ColumnElement[bool], now: int) -> int:
    """How many."""
    revoked_at = after(tables.box_key.c.restored, now)
    return connection.execute(update(tables.box_key).where(which).values(revoked_at=revoked_at)).rowcount


def _streamed(table: Table) -> Select[Any]:
    return select(table).execution_options(yield_per=READ_AT_ONCE)


def _revoked_that_spoke() -> Select[Any]:
    """Keys under which something was said last, and which were revoked since."""
    key, book, word = tables.box_key.c, tables.book.c, tables.presence.c
    spoke = or_(
        exists().where(book.machine == key.machine, book.told_by == key.key_id),
        exists().where(word.machine == key.machine, word.key_id == key.key_id),
    )
    return select(key.machine, key.key_id).where(key.revoked_at.is_not(None), spoke)
