"""The tables, as they stand after all migrations (a test compares): those of the first version, and what came since."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, MetaData, PrimaryKeyConstraint, Table, Text

from headquarters.store.migrations import first

metadata = MetaData()
for _table in first.metadata.sorted_tables:
    _table.to_metadata(metadata)

meta = metadata.tables["meta"]
box = metadata.tables["box"]
box_key = metadata.tables["box_key"]
book = metadata.tables["book"]
closure = metadata.tables["closure"]
message = metadata.tables["message"]
presence = metadata.tables["presence"]
finding = metadata.tables["finding"]
refused = metadata.tables["refused"]
evidence = metadata.tables["evidence"]
position = metadata.tables["position"]
person = metadata.tables["person"]
session = metadata.tables["session"]
api_key = metadata.tables["api_key"]

# 0002
book.append_column(Column("ledger", Text))  # the accepted ledger that the book follows; NULL: the one it began with
ledger = Table(
    "ledger",
    metadata,
    Column("machine", Text, nullable=False),
    Column("ledger_id", Text, nullable=False),
    Column("accepted_at", BigInteger, nullable=False),  # the newest of a machine counts
    Column("accepted_by", Text, nullable=False),
    PrimaryKeyConstraint("machine", "ledger_id"),
)

# 0003: the key that has said it last; NULL: said before that was kept
book.append_column(Column("told_by", Text))
presence.append_column(Column("key_id", Text))

# 0004, ms by headquarters' clock: closures that it got under the key from then on were withdrawn; NULL: it was never in the wrong hands
box_key.append_column(Column("stolen_since", BigInteger))

# 0005. How far each teller is with a finding: `told` as of the finding, `claimed_until` when it is tried again or by another instance, `tries` that
# failed. Box and person: ms, when a person changed the row last; NULL: before that was kept. A box: since when its shop is closed for good. A key: the
# revocation that was taken back last. A closure: the number of the transaction that kept it; 0: before there were numbers.
box.append_column(Column("changed_at", BigInteger))
box.append_column(Column("retired_at", BigInteger))
person.append_column(Column("changed_at", BigInteger))
box_key.append_column(Column("restored", BigInteger))
telling = Table(
    "telling",
    metadata,
    Column("finding", BigInteger, primary_key=True, autoincrement=False),
    Column("teller", Text, primary_key=True),
    Column("told", Integer, nullable=False),
    Column("claimed_until", BigInteger, nullable=False),
    Column("tries", Integer, nullable=False),
    Index("telling_told", "teller", "told"),
)
closure.append_column(Column("arrival", BigInteger, nullable=False, server_default="0"))
Index("closure_arrival", closure.c.mode, closure.c.arrival, closure.c.machine, closure.c.z, closure.c.id)

# 0006, in MessagePack. ranges: the numbers of a stream's messages that this database has, both ends included. asked: what the box was asked
# for, each with its times (`core.asking`); NULL: nothing
taken = Table(
    "taken",
    metadata,
    Column("stream", Text, nullable=False),
    Column("created", Text, nullable=False),
    Column("ranges", LargeBinary, nullable=False),
    PrimaryKeyConstraint("stream", "created"),
)
book.append_column(Column("asked", LargeBinary))
