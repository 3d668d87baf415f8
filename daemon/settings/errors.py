"""The one error of this package, and what it says of a misspelt name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from daemon.language import tr


class SettingsError(Exception):
    """The configuration cannot be used; one line that names where, which key, and why."""

    def __init__(self, source: str, key: str, reason: object) -> None:
        self.source = source
        self.key = key
        self.reason = " ".join(str(reason).split())
        super().__init__(": ".join(part for part in (source, key, self.reason) if part))


def misspelt(name: str, known: Iterable[str], problem: str) -> str:
    """The problem, with the nearest name that exists where there is one."""
    if best := difflib.get_close_matches(name, list(known), n=1):
        return tr("{problem} (did you mean {best}?)", problem=problem, best=best[0])
    return problem
