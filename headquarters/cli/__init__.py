"""Command line `mcfd-hq`."""

from headquarters.cli.main import main

__all__ = ["main"]
