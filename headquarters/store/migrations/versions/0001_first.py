"""The first version of the tables."""

from __future__ import annotations

from alembic import op

from headquarters.store.migrations import first

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    first.metadata.create_all(op.get_bind(), checkfirst=False)
