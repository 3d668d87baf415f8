"""Moved to `common.language.system`; this name goes when its last import has gone."""

from common.language.system import reason

__all__ = ["reason"]
