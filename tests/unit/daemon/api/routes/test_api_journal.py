"""What a seller sees of the journal."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.api import NIM, NOW, ROLE_KEYS, Served

from daemon.core.ledger.book import Aggregate, Book
from daemon.core.report.journal import JournalPage, Page
from daemon.usecases.worker.machine_worker import MachineWorker
from daemon.usecases.worker.machine_workers import MachineWorkers

DAY = 86_400_000
Opened = Callable[..., None]
USUAL = (NOW + 1 - 31 * DAY, NOW + 1)


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Page, str]]:
    pages: list[tuple[Page, str]] = []

    async def read_page(_: MachineWorker, page: Page, language: str) -> JournalPage:
        pages.append((page, language))
        return JournalPage(NIM, 0, None, ())

    monkeypatch.setattr("daemon.usecases.reports.journal.read_page", read_page)
    return pages


@pytest.fixture
def opened(workers: MachineWorkers) -> Opened:
    """Has the period be open since then (ms), which the daemon knows already or finds in the ledger."""

    def set_up(since: int, *, is_listed: bool = True) -> None:
        worker = workers.get(NIM, "live")
        totals = Aggregate(0, 0, {}, {}, since, 0, 0)

        async def aggregated(_: Book) -> Aggregate:
            return totals

        worker.aggregate = totals if is_listed else None
        worker.ledger = cast("Any", SimpleNamespace(aggregated=aggregated, peek=worker.ledger.peek))

    return set_up


@pytest.mark.parametrize(
    "how",
    [
        {"query": "format=csv"},
        {"query": "format=jsonl"},
        {"accept": "text/csv"},
        {"accept": "Application/X-NDJSON; q=1"},
        {"accept": "image/png, application/jsonl, application/json"},
    ],
)
async def test_a_seller_has_no_files(
    served: Served, opened: Opened, queries: list[tuple[Page, str]], how: dict[str, Any]
) -> None:
    """However they are asked for; `format` goes before `Accept`."""
    opened(0)
    headers = {"accept": how.get("accept", "application/json")}
    answer = await served.get(f"certifications?{how.get('query', '')}", key=ROLE_KEYS["seller"], headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (403, "ROLE_NOT_ALLOWED")
    json = await served.get("certifications?format=json", key=ROLE_KEYS["seller"], headers={"accept": "text/csv"})
    assert (json.status_code, len(queries)) == (200, 1)


@pytest.mark.parametrize("is_listed", [True, False])
@pytest.mark.parametrize("times", [(USUAL[0] - 1, USUAL[0]), (NOW - DAY, NOW - DAY)])
async def test_a_seller_sees_the_open_period(
    served: Served, opened: Opened, queries: list[tuple[Page, str]], times: tuple[int, int], is_listed: bool
) -> None:
    """Nothing of before it, also where the daemon has not read the totals yet; who may see reports sees all that the range has."""
    since, start = times
    opened(since, is_listed=is_listed)
    for role in ("seller", "reader"):
        await served.get("certifications", key=ROLE_KEYS[role])
    assert [page.start for page, _ in queries] == [start, USUAL[0]]
