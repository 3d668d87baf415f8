"""What makes two copies of the register one, and in which order closures have come."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = depends_on = None


def upgrade() -> None:
    for table in ("box", "person"):
        op.add_column(table, sa.Column("changed_at", sa.BigInteger))
    op.add_column("box", sa.Column("retired_at", sa.BigInteger))
    op.add_column("box_key", sa.Column("restored", sa.BigInteger))
