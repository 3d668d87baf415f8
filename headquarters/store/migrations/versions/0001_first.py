"""The first version of the tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    for create in (
        _meta,
        _box,
        _box_key,
        _book,
        _closure,
        _message,
        _presence,
        _finding,
        _refused,
        _evidence,
        _position,
        _person,
        _session,
        _api_key,
    ):
        create()


def _meta() -> None:
    op.create_table(
        "meta",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )


def _box() -> None:
    op.create_table(
        "box",
        sa.Column("machine", sa.Text, primary_key=True),
        sa.Column("nim", sa.Text, nullable=False),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("region", sa.Text, nullable=False),
        sa.Column("closes_at", sa.Integer),
        sa.Column("usual_at", sa.Integer),
        sa.Column("usual_days", sa.Integer, nullable=False),
        sa.Column("added_at", sa.BigInteger, nullable=False),
    )
    op.create_index("box_region", "box", ["region", "machine"])


def _box_key() -> None:
    op.create_table(
        "box_key",
        sa.Column("machine", sa.Text, nullable=False),
        sa.Column("key_id", sa.Text, nullable=False),
        sa.Column("line", sa.Text, nullable=False),
        sa.Column("added_at", sa.BigInteger, nullable=False),
        sa.Column("revoked_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("machine", "key_id"),
    )


def _book() -> None:
    op.create_table(
        "book",
        sa.Column("machine", sa.Text, nullable=False),
        sa.Column("mode", sa.Text, nullable=False),
        sa.Column("max_z", sa.BigInteger, nullable=False),
        sa.Column("held", sa.BigInteger, nullable=False),
        sa.Column("told_z", sa.BigInteger, nullable=False),
        sa.Column("last", sa.LargeBinary),
        sa.Column("closed_at", sa.BigInteger, nullable=False),
        sa.Column("received_at", sa.BigInteger, nullable=False),
        sa.Column("asked_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("machine", "mode"),
    )


def _closure() -> None:
    op.create_table(
        "closure",
        sa.Column("machine", sa.Text, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("nim", sa.Text, nullable=False),
        sa.Column("mode", sa.Text, nullable=False),
        sa.Column("ledger_id", sa.Text, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("z", sa.BigInteger, nullable=False),
        sa.Column("day", sa.Text, nullable=False),
        sa.Column("period_start", sa.BigInteger, nullable=False),
        sa.Column("period_end", sa.BigInteger, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("received_at", sa.BigInteger, nullable=False),
        sa.Column("certs", sa.BigInteger, nullable=False),
        sa.Column("ttc", sa.BigInteger, nullable=False),
        sa.Column("ht", sa.BigInteger, nullable=False),
        sa.Column("tva", sa.BigInteger, nullable=False),
        sa.Column("groups", sa.LargeBinary, nullable=False),
        sa.Column("payments", sa.LargeBinary, nullable=False),
        sa.Column("held", sa.LargeBinary, nullable=False),
        sa.Column("previous_id", sa.Text),
        sa.Column("proven", sa.Boolean),
        sa.Column("key_id", sa.Text, nullable=False),
        sa.Column("via", sa.Text, nullable=False),
        sa.Column("stream_seq", sa.BigInteger),
        sa.PrimaryKeyConstraint("machine", "id"),
    )
    op.create_index("closure_z", "closure", ["machine", "mode", "ledger_id", "epoch", "z"], unique=True)
    op.create_index("closure_number", "closure", ["machine", "mode", "z"])
    op.create_index("closure_day", "closure", ["mode", "day", "machine"])


def _message() -> None:
    op.create_table(
        "message",
        sa.Column("machine", sa.Text, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("headers", sa.Text, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("machine", "id"),
    )


def _presence() -> None:
    op.create_table(
        "presence",
        sa.Column("machine", sa.Text, primary_key=True),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("received_at", sa.BigInteger, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_index("presence_received", "presence", ["received_at"])


def _finding() -> None:
    op.create_table(
        "finding",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("machine", sa.Text, nullable=False),
        sa.Column("nim", sa.Text, nullable=False),
        sa.Column("mode", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("facts", sa.Text, nullable=False),
        sa.Column("found_at", sa.BigInteger, nullable=False),
        sa.Column("seen_at", sa.BigInteger),
        sa.Column("seen_by", sa.Text),
        sa.Column("solved_at", sa.BigInteger),
        sa.Column("solved_by", sa.Text),
        sa.Column("note", sa.Text),
        sa.Column("told", sa.Integer, nullable=False),
        sa.Column("claimed_until", sa.BigInteger, nullable=False),
    )
    op.create_index(
        "finding_open",
        "finding",
        ["machine", "mode", "kind", "key"],
        unique=True,
        sqlite_where=sa.text("solved_at IS NULL"),
        postgresql_where=sa.text("solved_at IS NULL"),
    )
    op.create_index("finding_machine", "finding", ["machine", "mode"])
    op.create_index("finding_told", "finding", ["told", "found_at"])


def _refused() -> None:
    op.create_table(
        "refused",
        sa.Column("day", sa.Text, nullable=False),
        sa.Column("via", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("count", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("day", "via", "reason"),
    )


def _evidence() -> None:
    op.create_table(
        "evidence",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("via", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("nim", sa.Text, nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sa.Column("headers", sa.Text, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("digest", sa.Text, nullable=False, unique=True),
    )
    op.create_index("evidence_reason", "evidence", ["reason", "id"])


def _position() -> None:
    op.create_table(
        "position",
        sa.Column("stream", sa.Text, primary_key=True),
        sa.Column("seq", sa.BigInteger, nullable=False),
    )


def _person() -> None:
    op.create_table(
        "person",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("password", sa.Text, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("disabled", sa.Boolean, nullable=False),
        sa.Column("added_at", sa.BigInteger, nullable=False),
    )


def _session() -> None:
    op.create_table(
        "session",
        sa.Column("hash", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("begun_at", sa.BigInteger, nullable=False),
        sa.Column("used_at", sa.BigInteger, nullable=False),
    )


def _api_key() -> None:
    op.create_table(
        "api_key",
        sa.Column("hash", sa.Text, primary_key=True),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("added_at", sa.BigInteger, nullable=False),
        sa.Column("revoked_at", sa.BigInteger),
    )
