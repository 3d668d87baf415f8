"""The ledger in SQLite; the only package with SQL."""

from daemon.store.store import Store

__all__ = ["Store"]
