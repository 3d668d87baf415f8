"""The tables of a book: attempts, totals, closures, decisions, time."""
