"""What makes two copies of the register one, how far each teller is, and in which order closures have come."""

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
    op.create_table(
        "telling",
        sa.Column("finding", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("teller", sa.Text, primary_key=True),
        sa.Column("told", sa.Integer, nullable=False),
        sa.Column("claimed_until", sa.BigInteger, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
    )
    op.create_index("telling_told", "telling", ["teller", "told"])
    op.add_column("closure", sa.Column("arrival", sa.BigInteger, nullable=False, server_default="0"))
    op.create_index("closure_arrival", "closure", ["mode", "arrival", "machine", "z", "id"])
