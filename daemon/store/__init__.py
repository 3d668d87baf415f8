"""The ledger in SQLite; the only package with SQL."""
