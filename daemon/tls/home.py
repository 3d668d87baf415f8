"""What lies in the folder of a box's own authority, and what can be wrong with it; without the weight of what reads it."""

from __future__ import annotations

KEY = "ca.key"
SERVER = "server.pem"


class AuthorityError(Exception):
    """One line that says what is wrong with the authority, and what to do."""
