"""The log in readable words: what happened since the start, newest first."""

from __future__ import annotations

from typing import Final

from daemon.api.http.answers import Reply
from daemon.api.page.visit import Visit, screen, shown

SHOWN: Final = 200
SERIOUS: Final = frozenset({"warning", "error", "critical"})


@screen("/ui/log", "administer")
async def log(visit: Visit) -> Reply:
    """All of it, or what is serious, or what has a word in it."""
    asked, only = visit.query.get("q", "")[:60], visit.query.get("only", "")
    wanted = asked.casefold()
    found = [
        line
        for line in visit.page.log_lines(visit.language)
        if (only != "serious" or line.level in SERIOUS) and wanted in f"{line.words} {line.values}".casefold()
    ]
    return await shown(visit, "log.html", lines=found[:SHOWN], asked=asked, only=only)


HANDLERS = (log,)
