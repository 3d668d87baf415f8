"""Alembic's entry: migrates the connection that `Database.migrate` gives it, inside that transaction."""

from __future__ import annotations

from alembic import context

connection = context.config.attributes["connection"]
context.configure(connection=connection, transactional_ddl=True)
context.run_migrations()
