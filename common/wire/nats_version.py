"""Which nats-server is too old: eleven advisories of 2026 are mended in 2.11.15 and 2.12.6 (docs/upstream.md)."""

from __future__ import annotations

import re

MINIMUM = "2.11.15, 2.12.6"
_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")


def is_outdated(version: str) -> bool:
    """As INFO says it; what cannot be read is not judged."""
    found = _VERSION.match(version)
    if found is None:
        return False
    of_server = tuple(map(int, found.groups()))
    return of_server < ((2, 11, 15) if of_server < (2, 12) else (2, 12, 6))
