"""Ledgers that somebody has accepted in the place of one that was lost."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("book", sa.Column("ledger", sa.Text))
    op.create_table(
        "ledger",
        sa.Column("machine", sa.Text, primary_key=True),
        sa.Column("ledger_id", sa.Text, primary_key=True),
        sa.Column("accepted_at", sa.BigInteger, nullable=False),
        sa.Column("accepted_by", sa.Text, nullable=False),
    )
