"""One book at work: its machine, its queue, what is in flight, its totals."""
