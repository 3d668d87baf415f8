"""The machine's side of a serial line: pseudo-terminal, pacing, faults."""
