"""Recordings of the lines: the last megabytes, and incidents."""
