"""What time brings about: who has been silent, and when each shop usually closes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
from sqlalchemy import bindparam, or_, select, update

from headquarters.core.lateness import Habit
from headquarters.core.wording import Fact
from headquarters.store import tables
from headquarters.store.database import READ_AT_ONCE, Database
from headquarters.store.findings import keep_fact

LIVE = "live"
SLACK_MILLIS = 60_000
"""By which the clocks of two instances may differ."""


class Silent(msgspec.Struct, frozen=True):
    """A box that has said nothing for a while; times in milliseconds, 0 for never."""

    machine: str
    nim: str
    closes_at: int | None
    usual_at: int | None
    usual_days: int
    closed_at: int
    heard_at: int


class Watching:
    def __init__(self, database: Database) -> None:
        self._database = database

    def silent(self, since: int, now: int) -> Iterator[Silent]:
        """Boxes whose last word came before that, or in a time that is still to come, which says nothing."""
        box, presence, book = tables.box.c, tables.presence.c, tables.book.c
        joined = tables.box.outerjoin(tables.presence, presence.machine == box.machine).outerjoin(
            tables.book, (book.machine == box.machine) & (book.mode == LIVE)
        )
        query = (
            select(
                *(
                    box.machine,
                    box.nim,
                    box.closes_at,
                    box.usual_at,
                    box.usual_days,
                    book.closed_at,
                    presence.received_at,
                )
            )
            .select_from(joined)
            .where(box.retired_at.is_(None))
            .where(
                or_(
                    presence.received_at.is_(None),
                    presence.received_at < since,
                    presence.received_at > now + SLACK_MILLIS,
                )
            )
        )
        with self._database.read() as connection:
            for row in connection.execute(query.execution_options(yield_per=READ_AT_ONCE)):
                yield Silent(*row[:5], row[5] or 0, row[6] or 0)

    def settle_late(self, late: Mapping[str, tuple[str, Fact]], now: int) -> None:
        """The open findings of that kind become exactly these, by machine, each with its NIM."""
        table = tables.finding.c
        is_open = (table.kind == "late") & table.solved_at.is_(None)
        with self._database.write() as connection:
            open_ids = {
                row.machine: row.id for row in connection.execute(select(table.id, table.machine).where(is_open))
            }
            gone = [id_ for machine, id_ in open_ids.items() if machine not in late]
            if gone:
                connection.execute(update(tables.finding).where(table.id.in_(gone)).values(solved_at=now, solved_by=""))
            for machine, (nim, fact) in late.items():
                if machine not in open_ids:
                    keep_fact(connection, (machine, LIVE), nim, fact, now)

    def learnt(self, habits: Mapping[str, Habit]) -> None:
        rows = [{"which": machine, "at": habit.minute, "days": habit.days} for machine, habit in habits.items()]
        if not rows:
            return
        one = update(tables.box).where(tables.box.c.machine == bindparam("which"))
        with self._database.write() as connection:
            connection.execute(one.values(usual_at=bindparam("at"), usual_days=bindparam("days")), rows)
