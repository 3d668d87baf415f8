"""The box's own authority and its certificate."""

AUTHORITY_KEY = "ca.key"
SERVER_PAIR = "server.pem"


class AuthorityError(Exception):
    """One line that says what is wrong with the authority, and what to do."""
