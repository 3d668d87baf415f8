"""Periodic work of a running daemon for its own box."""
