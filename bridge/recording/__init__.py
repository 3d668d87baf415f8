"""Recordings of a line, with everything private masked."""
