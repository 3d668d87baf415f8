"""Composition of headquarters: settings, background tasks, start and stop."""
