"""X, Z, A, ranges, articles, journal, receipt: made from the ledger."""
