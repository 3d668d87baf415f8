"""The composition root: the only room that sees everything."""

from daemon.app.serve import serve

__all__ = ["serve"]
