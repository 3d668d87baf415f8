"""Which messages of a stream were taken, and what a box was asked for how often."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = depends_on = None


def upgrade() -> None:
    op.create_table(
        "taken",
        sa.Column("stream", sa.Text, primary_key=True),
        sa.Column("created", sa.Text, primary_key=True),
        sa.Column("ranges", sa.LargeBinary, nullable=False),
    )
    op.add_column("book", sa.Column("asked", sa.LargeBinary))
