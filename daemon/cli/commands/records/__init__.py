"""Commands about what the ledger holds: reports, journal, backup, upstream."""
