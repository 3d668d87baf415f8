"""A simulated fiscal machine, an independent reading of the protocol."""
