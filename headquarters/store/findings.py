"""Findings and their states: open, seen by a person, solved by a person or automatically, notified when found and when
solved.

Also the input of time-based findings: silent boxes and usual closing times."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import (
    Connection,
    Row,
    Select,
    Text,
    Update,
    and_,
    bindparam,
    case,
    cast,
    func,
    or_,
    select,
    text,
    update,
)

from common.wire.instants import instant_text
from headquarters.core.lateness import Habit
from headquarters.core.wording import KIND, PASSING, Fact, Facts, sentence
from headquarters.store import tables
from headquarters.store.database import READ_AT_ONCE, Part, insert_new, is_sqlite, parts, upsert

NEW, NOTIFIED, NOTIFIED_SOLVED = range(3)
NOTIFICATION_STATE = ("state", "claimed_until", "tries")
MAX_ID = 2**31 - 1
"""Maximum of the column."""
LONGEST_PAUSE, MAX_TRIES = 3_600_000, 20
A_DAY = AHEAD_MILLIS = 86_400_000
"""A time further ahead was written when our clock was ahead."""
CLAIMING = 8_490
"""Group of advisory locks: instances claim one after the other per notifier."""

PASSED = tables.finding.c.key + " " + cast(tables.finding.c.id, Text)
"""Key of a past finding, so that the same fact can be found again."""
LIVE = "live"
SLACK_MILLIS = 60_000
"""Clock difference between two instances."""


class StoredFinding(msgspec.Struct, frozen=True, kw_only=True):
    """Times in ms; `solved_by` is empty if solved automatically, `label` if the shop has no name."""

    id: int
    kind: str
    machine: str
    nim: str
    label: str
    mode: str
    facts: Facts
    found_at: int
    seen_at: int | None
    seen_by: str | None
    solved_at: int | None
    solved_by: str | None
    note: str | None


class Silent(msgspec.Struct, frozen=True):
    """A silent box; times in ms, 0 for never."""

    machine: str
    nim: str
    closes_at: int | None
    usual_at: int | None
    usual_days: int
    closed_at: int
    heard_at: int


def for_programs(finding: StoredFinding) -> dict[str, object]:
    fields = {name: getattr(finding, name) for name in ("id", "kind", "nim", "label", "facts", "solved_by")}
    detail, solved_at = sentence(finding.kind, finding.facts, "en"), finding.solved_at
    times = {"found_at": instant_text(finding.found_at), "solved_at": solved_at and instant_text(solved_at)}
    return fields | {"detail": detail} | times


def add_fact(connection: Connection, book: tuple[str, str], nim: str, fact: Fact, now: int) -> None:
    """Adds the finding unless it exists, even if solved by a person: the fact is permanent."""
    table = tables.finding.c
    same = and_(table.machine == book[0], table.mode == book[1], table.kind == fact.kind, table.key == fact.key)
    if connection.scalar(select(table.id).where(same).limit(1)) is None:
        insert_new(connection, tables.finding, [_found(book, nim, fact, now)])


def settle_passing(
    connection: Connection, kinds: Sequence[str], facts: Mapping[tuple[str, str], Sequence[Fact]], now: int
) -> None:
    """Makes the open findings of these kinds equal to `facts`, per book: others are solved automatically, and values
    such as days and hours are updated. A finding solved by a person stays solved: a gap until it is past, a late
    closure for its day, others for a day."""
    if not facts:
        return
    table = tables.finding.c
    mine = and_(table.machine.in_(sorted({machine for machine, _ in facts})), table.kind.in_(kinds))
    by_a_person = and_(table.solved_by != "", table.key.not_like("% %"))
    query = select(tables.finding).where(mine, or_(table.solved_at.is_(None), by_a_person))
    query = query.order_by(table.machine, table.id.desc())
    if "late" in kinds:  # the look and the boxes' own words settle it, each of many shops: all in one order
        query = query.with_for_update()
    new = {(*book, fact.kind, fact.key): fact for book, found in facts.items() for fact in found}
    gone: list[int] = []
    passed: list[int] = []
    changed: list[dict[str, Any]] = []
    for row in connection.execute(query).all():
        key, is_open = (row.machine, row.mode, row.kind, row.key), row.solved_at is None
        fact, before = new.get(key), msgspec.json.decode(row.facts, type=Facts)
        if key[:2] not in facts:
            continue
        if fact is None or not (is_open or _is_settled(row, before, fact, now)):
            (gone if is_open else passed).append(row.id)
            continue
        del new[key]
        if is_open and before != fact.facts:
            changed.append({"which": row.id, "said": _written(fact)})
    if gone:
        connection.execute(update(tables.finding).where(table.id.in_(gone)).values(solved_at=now, solved_by=""))
    if passed:
        connection.execute(update(tables.finding).where(table.id.in_(passed)).values(key=PASSED))
    if changed:
        one = update(tables.finding).where(table.id == bindparam("which"))
        connection.execute(one.values(facts=bindparam("said")), changed)
    nims = nims_of(connection, {machine for machine, *_ in new})
    rows = [_found(key[:2], nims.get(key[0], key[0]), fact, now) for key, fact in new.items()]
    insert_new(connection, tables.finding, rows)


def _is_settled(row: Row[Any], before: Facts, fact: Fact, now: int) -> bool:
    if row.kind in ("gap", "late"):
        return before.get("day") == fact.facts.get("day")
    return bool(abs(now - row.solved_at) < A_DAY)


def _found(book: tuple[str, str], nim: str, fact: Fact, now: int) -> dict[str, Any]:
    row = {"kind": fact.kind, "machine": book[0], "nim": nim, "mode": book[1], "key": fact.key}
    return row | {"facts": _written(fact), "found_at": now, "notification_state": NEW, "claimed_until": 0}


def _written(fact: Fact) -> str:
    return msgspec.json.encode(fact.facts).decode()


def invalidate(
    connection: Connection, book: tuple[str, str], is_gone: Callable[[Facts], bool], note: str, now: int
) -> None:
    """Solves, with the note, findings about closures that are no longer in the table. Findings of the correct closures
    are made anew when they arrive."""
    table = tables.finding.c
    standing = and_(table.machine == book[0], table.mode == book[1], table.kind.not_in(PASSING))
    query = select(table.id, table.facts).where(standing, table.solved_at.is_(None))
    for row in connection.execute(query).all():
        if is_gone(msgspec.json.decode(row.facts, type=Facts)):
            solved = {"solved_at": now, "solved_by": "", "note": note, "key": PASSED}
            connection.execute(update(tables.finding).where(table.id == row.id).values(solved))


def nims_of(connection: Connection, machines: Collection[str]) -> dict[str, str]:
    """NIM of each registered machine."""
    query = select(tables.box.c.machine, tables.box.c.nim).where(tables.box.c.machine.in_(machines))
    return {row.machine: row.nim for row in connection.execute(query)} if machines else {}


class FindingStore(Part):
    def listed(
        self,
        *,
        is_open: bool | None = None,
        machine: str | None = None,
        before: int = MAX_ID,
        limit: int | None = None,
    ) -> list[StoredFinding]:
        """Newest first, with ids below `before`."""
        table = tables.finding.c
        query = _with_label().order_by(table.id.desc()).limit(limit)
        if is_open is not None:
            query = query.where(table.solved_at.is_(None) if is_open else table.solved_at.is_not(None))
        if machine is not None:
            query = query.where(table.machine == machine)
        if before < MAX_ID:
            query = query.where(table.id < before)
        return self._database.rows(_finding, query)

    def open_by_machine(self, machines: Sequence[str]) -> dict[str, int]:
        """Number of open findings, for machines that have any."""
        table = tables.finding.c
        count = func.count().label("open")
        query = select(table.machine, count).where(table.machine.in_(machines), table.solved_at.is_(None))
        return {row.machine: row.open for row in self._database.found(query.group_by(table.machine))}

    def count_open(self) -> int:
        table = tables.finding.c
        return self._database.scalar(select(func.count(table.id)).where(table.solved_at.is_(None))) or 0

    def mark_seen(self, id_: int, who: str, now: int) -> bool:
        """Marks it as seen. False if no open finding has this id."""
        unseen = _open(id_).where(tables.finding.c.seen_at.is_(None))
        return self._database.update_one(unseen.values(seen_at=now, seen_by=who))

    def solve(self, id_: int, who: str, note: str, now: int) -> bool:
        """Solves it with a note. False if no open finding has this id."""
        return self._database.update_one(_open(id_).values(solved_at=now, solved_by=who, note=note))

    def claim_notifications(
        self, *, older_than: int, now: int, lease: int, limit: int = 50, notifier: str = ""
    ) -> list[StoredFinding]:
        """Claims findings for this notifier and instance for `lease` ms, worst kind first: open ones
        (temporary kinds only if found before `older_than`), and solved ones that it sent while open. A finding solved
        before its first notification is never sent."""
        finding, mine, ahead = tables.finding.c, tables.notification.c, now + AHEAD_MILLIS
        claimed_until = func.coalesce(mine.claimed_until, 0)
        state = func.coalesce(mine.state, finding.notification_state)
        fresh = and_(
            finding.solved_at.is_(None),
            state == NEW,
            or_(finding.found_at <= older_than, finding.found_at > ahead, finding.kind.not_in(PASSING)),
        )
        solved = and_(
            finding.solved_at.is_not(None),
            or_(mine.state == NOTIFIED, and_(mine.state.is_(None), finding.notification_state == NOTIFIED)),
        )
        row = and_(mine.finding == finding.id, mine.notifier == notifier)
        query = (
            _with_label()
            .outerjoin(tables.notification, row)
            .add_columns(state.label("state"), func.coalesce(mine.tries, 0).label("tries"))
            .where(or_(fresh, solved), or_(claimed_until <= now, claimed_until > ahead))
            .order_by(case({kind: place for place, kind in enumerate(KIND)}, value=finding.kind), finding.id)
            .limit(limit)
        )
        with self._database.write() as connection:
            if not is_sqlite(connection):
                lock = text("SELECT pg_advisory_xact_lock(:group, hashtext(:notifier))")
                connection.execute(lock, {"group": CLAIMING, "notifier": notifier})
            rows = connection.execute(query).mappings().all()
            claims = [_notification(row["id"], notifier, row["state"], now + lease, row["tries"]) for row in rows]
            upsert(connection, tables.notification, claims, NOTIFICATION_STATE)
            return [_finding(**row) for row in rows]

    def mark_notified(self, findings: Sequence[StoredFinding], notifier: str = "") -> None:
        rows = [
            _notification(finding.id, notifier, NOTIFIED if finding.solved_at is None else NOTIFIED_SOLVED, 0, 0)
            for finding in findings
        ]
        with self._database.write() as connection:
            upsert(connection, tables.notification, rows, NOTIFICATION_STATE)

    def postpone(
        self, findings: Sequence[StoredFinding], notifier: str, *, now: int, again: int, is_refused: bool
    ) -> None:
        """Retries after `again` ms; if the content was refused, after twice the delay each time."""
        table = tables.notification.c
        with self._database.write() as connection:
            mine = and_(table.notifier == notifier, table.finding.in_([finding.id for finding in findings]))
            rows = [dict(row) for row in connection.execute(select(tables.notification).where(mine)).mappings()]
            for row in rows:
                row["claimed_until"] = now + (min(again * 2 ** row["tries"], LONGEST_PAUSE) if is_refused else again)
                row["tries"] += is_refused and row["tries"] < MAX_TRIES
            upsert(connection, tables.notification, rows, NOTIFICATION_STATE)


class Watching(Part):
    def silent(self, since: int, now: int) -> Iterator[Silent]:
        """Boxes whose last presence arrived before `since`, or in the future, which is no evidence. A closing time in
        the future is replaced with the arrival."""
        box, presence, book = tables.box.c, tables.presence.c, tables.book.c
        joined = tables.box.outerjoin(tables.presence, presence.machine == box.machine).outerjoin(
            tables.book, (book.machine == box.machine) & (book.mode == LIVE)
        )
        heard_at = func.coalesce(presence.received_at, 0)
        closed_at = case((book.closed_at > now + AHEAD_MILLIS, book.received_at), else_=book.closed_at)
        query = (
            select(box.machine, box.nim, box.closes_at, box.usual_at, box.usual_days)
            .add_columns(func.coalesce(closed_at, 0).label("closed_at"), heard_at.label("heard_at"))
            .select_from(joined)
            .where(box.retired_at.is_(None), ~heard_at.between(since, now + SLACK_MILLIS))
        )
        with self._database.read() as connection:
            for row in connection.execute(query.execution_options(yield_per=READ_AT_ONCE)).mappings():
                yield Silent(**row)

    def settle_late(self, late: Mapping[str, Fact], now: int) -> None:
        """Makes the open late findings equal to `late`, by machine."""
        table = tables.finding.c
        is_open = select(table.machine).where(table.kind == "late", table.solved_at.is_(None))
        with self._database.write() as connection:
            machines = {*connection.scalars(is_open), *late}
            for some in parts(sorted(machines)):
                facts = {(machine, LIVE): [late[machine]] if machine in late else [] for machine in some}
                settle_passing(connection, ("late",), facts, now)

    def learnt(self, habits: Mapping[str, Habit]) -> None:
        rows = [{"which": machine, "at": habit.minute, "days": habit.days} for machine, habit in habits.items()]
        if not rows:
            return
        one = update(tables.box).where(tables.box.c.machine == bindparam("which"))
        with self._database.write() as connection:
            connection.execute(one.values(usual_at=bindparam("at"), usual_days=bindparam("days")), rows)


def _open(id_: int) -> Update:
    """Uses id 0, which no finding has, for ids outside the column's range."""
    table = tables.finding.c
    number = id_ if 0 < id_ <= MAX_ID else 0
    return update(tables.finding).where(table.id == number, table.solved_at.is_(None))


def _notification(finding: int, notifier: str, state: int, until: int, tries: int) -> dict[str, Any]:
    return {"finding": finding, "notifier": notifier, "state": state, "claimed_until": until, "tries": tries}


def _with_label() -> Select[Any]:
    label = select(tables.box.c.label).where(tables.box.c.machine == tables.finding.c.machine).scalar_subquery()
    return select(tables.finding, func.coalesce(label, "").label("label"))


def _finding(facts: str, **row: Any) -> StoredFinding:
    values = {name: row[name] for name in StoredFinding.__struct_fields__ if name != "facts"}
    return StoredFinding(**values, facts=msgspec.json.decode(facts, type=Facts))
