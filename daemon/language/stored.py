"""Moved to `common.language.stored`; this name goes when its last import has gone."""

from common.language.stored import Stored, retold, stored

__all__ = ["Stored", "retold", "stored"]
