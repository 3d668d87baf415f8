"""Encrypted backup of the whole box."""
