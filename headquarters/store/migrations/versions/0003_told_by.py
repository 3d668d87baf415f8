"""Which key has signed what a box has said."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = depends_on = None


def upgrade() -> None:
    op.add_column("book", sa.Column("told_by", sa.Text))
    op.add_column("presence", sa.Column("key_id", sa.Text))
