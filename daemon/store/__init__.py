"""The ledger in SQLite: the only room with SQL (docs/architecture.md)."""

from daemon.store.store import Store

__all__ = ["Store"]
