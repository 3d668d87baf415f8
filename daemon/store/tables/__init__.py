"""The tables of the ledger, each with its `.sql` beside it. Knows no connection handling."""
