"""Command line `mcfd-hq`."""

from __future__ import annotations

from headquarters.cli.main import main

__all__ = ["main"]
