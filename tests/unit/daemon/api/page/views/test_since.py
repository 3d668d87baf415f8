"""Since when a machine does not answer, in the banner and beside the machine."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from common.language import Language
from daemon.api.page.visit import Visit

NOON = datetime(2026, 11, 27, 12, 0, tzinfo=UTC)


def visit_at_noon(language: Language) -> Visit:
    worker = SimpleNamespace(
        book=SimpleNamespace(nim="EL02000015-1", mode="live"), now=lambda: int(NOON.timestamp() * 1000)
    )
    worker.in_use = worker
    deps: Any = SimpleNamespace(workers=SimpleNamespace(all=lambda: [worker], retired=tuple))
    page: Any = SimpleNamespace(zone=UTC)
    request: Any = None
    session: Any = None
    return Visit(request, deps, page, session, language, {}, {})


@pytest.mark.parametrize(
    ("language", "hours", "expected"),
    [
        ("fr", 1, "Ventes arrêtées depuis 11:00"),
        ("fr", 12, "Ventes arrêtées depuis 00:00"),
        ("fr", 13, "Ventes arrêtées depuis le 26/11/2026 à 23:00"),
        ("en", 1, "Sales have stopped since 11:00"),
        ("en", 13, "Sales have stopped since 26 Nov 2026 at 23:00"),
    ],
)
def test_the_day_is_named_unless_it_is_today(language: Language, hours: int, expected: str) -> None:
    visit = visit_at_noon(language)
    since = int((NOON - timedelta(hours=hours)).timestamp() * 1000)
    assert visit.say("Sales have stopped since {moment}", moment=visit.since(since)) == expected
