"""Refused messages: counts by day and reason, and samples. Both are bounded, so that strangers cannot fill the
database."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from datetime import UTC
from operator import itemgetter
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, Row, RowMapping, delete, select

from common.wire.closure import ClosureData
from headquarters.core.checks import machine_of
from headquarters.core.reception import (
    Message,
    MessageRefused,
    Reason,
    Received,
    ReceivedCalendar,
    Via,
    day_of,
    is_junk,
)
from headquarters.core.wording import Fact
from headquarters.store import tables
from headquarters.store.database import Part, insert_new, insert_of
from headquarters.store.findings import LIVE, add_fact, nims_of

SAMPLES = 200
"""Samples of each reason; older ones are deleted."""
WHOLE_REASONS: Final[frozenset[Reason]] = frozenset({"fork", "withdrawn"})
"""Closures signed by a box's key: all of them are stored, unshortened."""
SAMPLE_BYTES = 8192
Refusal = tuple[Message, MessageRefused]


class RefusedCount(msgspec.Struct, frozen=True):
    """Number of refused messages of one day, way and reason."""

    day: str
    """YYYY-MM-DD"""
    via: str
    reason: str
    count: int


def add_fork(connection: Connection, received: Received | ReceivedCalendar, now: int) -> None:
    data = received.data
    name = f"Z {data.z_number}" if isinstance(data, ClosureData) else f"{data.kind} {data.period}"
    detail = f"{name}, id {data.report_id}"
    _sample(connection, received.message, MessageRefused("fork", detail, received.data.nim), now)
    _count(connection, "fork", received.message.via, now)


def store_withdrawn(connection: Connection, rows: Sequence[RowMapping], now: int) -> None:
    """Stores withdrawn closures, unshortened."""
    for row in rows:
        message = Message(via=row["via"], headers=msgspec.json.decode(row["headers"]), body=bytes(row["body"]))
        _sample(connection, message, MessageRefused("withdrawn", f"Z {row['z']}, id {row['id']}", row["nim"]), now)


class EvidenceStore(Part):
    def refuse(self, refusals: Sequence[Refusal], now: int) -> None:
        """Counts refusals and stores shortened samples."""
        # Sorted, so that two instances cannot deadlock.
        counted = Counter((refused.reason, message.via) for message, refused in refusals)
        samples = {_digest(refused.reason, message): (message, refused) for message, refused in refusals}
        with self._database.write() as connection:
            for (reason, via), count in sorted(counted.items()):
                _count(connection, reason, via, now, count)
            for _, (message, refused) in sorted(samples.items(), key=itemgetter(0)):
                _sample(connection, message, refused, now)
            for reason in sorted({reason for reason, _ in counted}):
                _prune(connection, reason)
            _find(connection, refusals, now)

    def counted(self, since: str) -> list[RefusedCount]:
        """From the day `since` (YYYY-MM-DD, UTC) on."""
        table = tables.refused.c
        query = select(table.day, table.via, table.reason, table.count).where(table.day >= since)
        return self._database.rows(RefusedCount, query.order_by(table.day.desc(), table.reason))

    def samples(self, limit: int = 50) -> Sequence[Row[Any]]:
        """Newest first, without `body`."""
        table = tables.evidence.c
        query = select(table.id, table.at, table.via, table.reason, table.nim, table.detail)
        return self._database.found(query.order_by(table.id.desc()).limit(limit))


def _count(connection: Connection, reason: Reason, via: Via, now: int, count: int = 1) -> None:
    table = tables.refused
    row = {"day": day_of(now, UTC), "via": via, "reason": reason, "count": count}
    more = insert_of(connection)(table).on_conflict_do_update(
        index_elements=["day", "via", "reason"], set_={"count": table.c.count + count}
    )
    connection.execute(more, row)


def _find(connection: Connection, refusals: Sequence[Refusal], now: int) -> None:
    """A finding for each known shop, reason and day if the message can be from no box, but came with a box's NATS
    key."""
    found = {
        (machine_of(message.nim or ""), refused.reason, day_of(message.at or now, UTC))
        for message, refused in refusals
        if is_junk(message, refused)
    }
    nims = nims_of(connection, {machine for machine, _, _ in found})
    for machine, reason, day in sorted(found):
        if machine in nims:
            fact = Fact("refused", f"{day}:{reason}", {"day": day, "reason": reason})
            add_fact(connection, (machine, LIVE), nims[machine], fact, now)


def _sample(connection: Connection, message: Message, refused: MessageRefused, now: int) -> None:
    reason = refused.reason
    whole = message.body if reason in WHOLE_REASONS else message.body[:SAMPLE_BYTES]
    row = {
        "at": now,
        "via": message.via,
        "reason": reason,
        "nim": refused.nim[:64],
        "detail": str(refused)[:500].replace("\0", ""),
        "headers": msgspec.json.encode({name: text[:500] for name, text in message.headers.items()}).decode(),
        "body": whole,
        "digest": _digest(reason, message),
    }
    insert_new(connection, tables.evidence, [row])


def _digest(reason: Reason, message: Message) -> str:
    return hashlib.sha256(reason.encode() + message.body).hexdigest()


def _prune(connection: Connection, reason: Reason) -> None:
    table = tables.evidence.c
    if reason in WHOLE_REASONS:
        return
    newest = select(table.id).where(table.reason == reason).order_by(table.id.desc()).offset(SAMPLES).limit(1)
    oldest = connection.scalar(newest)
    if oldest is not None:
        connection.execute(delete(tables.evidence).where(table.reason == reason, table.id <= oldest))
