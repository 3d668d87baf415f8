"""HTTP API: reception of closures, and queries of programs."""
