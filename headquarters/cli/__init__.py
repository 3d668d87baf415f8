"""`mcfd-hq`: what a person types at headquarters."""

from __future__ import annotations

from headquarters.cli.main import main

__all__ = ["main"]
