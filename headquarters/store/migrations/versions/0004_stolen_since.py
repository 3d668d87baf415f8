"""Since when a key was in the wrong hands."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = depends_on = None


def upgrade() -> None:
    op.add_column("box_key", sa.Column("stolen_since", sa.BigInteger))
