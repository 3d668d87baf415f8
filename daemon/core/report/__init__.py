"""X, Z, A, ranges, articles, journal, receipt: made from what is kept."""
