"""Shops to measure with machines and tills, and ledgers made in bulk."""
