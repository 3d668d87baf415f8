"""The box's own authority and its certificate."""

AUTHORITY_KEY = "ca.key"
SERVER_PAIR = "server.pem"


NOT_VALID = 3
"""Exit code of `daemon.tls.authority`: no valid certificate is in place."""


class AuthorityError(Exception):
    """One line that says what is wrong with the authority, and what to do."""


class NotRenewed(AuthorityError):
    """As AuthorityError; the certificate in place is valid."""
