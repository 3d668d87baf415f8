"""A book of a shop: received closures and presences, and withdrawals. Its row is the lock for all of them."""
