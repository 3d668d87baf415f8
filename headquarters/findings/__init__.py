"""Checks by the clock instead of by a closure, and notifications."""
