"""In which order closures have come: the number of the transaction that kept them.

Whoever takes one waits until the transaction before has ended, so that none with a lower number comes after one that was seen. The numbers go with
the clock, so that those of a database that was put back go on behind those that were given before."""

from __future__ import annotations

from sqlalchemy import BigInteger, Connection, cast
from sqlalchemy import Text as SqlText

from headquarters.store import tables
from headquarters.store.bulk import insert_into
from headquarters.store.revision import after

ARRIVAL = "arrival"


def next_arrival(connection: Connection, now: int) -> int:
    """Held until the transaction ends."""
    meta = tables.meta
    following = after(cast(meta.c.value, BigInteger), now)
    statement = insert_into(connection, meta).values(name=ARRIVAL, value=str(now))
    statement = statement.on_conflict_do_update(index_elements=["name"], set_={"value": cast(following, SqlText)})
    return int(connection.scalar(statement.returning(meta.c.value)) or 0)
