"""What every section of the configuration is made of."""

from __future__ import annotations

import msgspec


def key(text: str, *, reload: bool = False) -> msgspec.Meta:
    """What a key means; `reload` when SIGHUP brings it into force, otherwise a restart does."""
    return msgspec.Meta(description=text, extra={"reload": reload})


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One table of the file; an unknown key in it stops the start."""
