"""The machine itself: commands, counters, taxes, habits of a firmware."""
