"""Why the operating system refused, in words."""

from __future__ import annotations

from daemon.language import tr


def reason(error: OSError) -> str:
    """Why a file could not be opened, without its path."""
    if isinstance(error, FileNotFoundError):
        return tr("there is no such file")
    if isinstance(error, PermissionError):
        return tr("permission denied")
    if isinstance(error, IsADirectoryError):
        return tr("it is a directory")
    return error.strerror or type(error).__name__
