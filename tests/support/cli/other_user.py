"""The user of a command that root starts for a test: `become` is called in the command's process before its `main`."""

import os


def become(user: int) -> None:
    """From now on that user, of the group of the same number alone."""
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
