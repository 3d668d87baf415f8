"""What is asked of the journal by a query and by `Accept`."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.api import NIM, NOW, ROLE_KEYS, Served

from daemon.api.routes import journal
from daemon.core.clock import zone
from daemon.core.ledger.book import Aggregate, Book
from daemon.core.report.journal import JournalPage, Page
from daemon.usecases.reports import journal_files
from daemon.usecases.worker.machine_worker import MachineWorker
from daemon.usecases.worker.machine_workers import MachineWorkers

DAY = 86_400_000
Opened = Callable[..., None]
USUAL = (NOW + 1 - 31 * DAY, NOW + 1)
EVER = (0, 1 << 53)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Page, str]]:
    pages: list[tuple[Page, str]] = []

    async def read_page(_: MachineWorker, page: Page, language: str) -> JournalPage:
        pages.append((page, language))
        return JournalPage(NIM, 0, None, ())

    monkeypatch.setattr("daemon.usecases.reports.journal.read_page", read_page)
    return pages


@pytest.fixture
def opened(workers: MachineWorkers) -> Opened:
    """Has the period be open since then (ms), which the daemon knows already or finds in the ledger."""

    def set_up(since: int, *, is_known: bool = True) -> None:
        worker = workers.get(NIM, "live")
        assert worker is not None
        totals = Aggregate(0, 0, {}, {}, since, 0, 0)

        async def aggregated(_: Book) -> Aggregate:
            return totals

        worker.aggregate = totals if is_known else None
        worker.ledger = cast("Any", SimpleNamespace(aggregated=aggregated))

    return set_up


@pytest.mark.parametrize(
    ("query", "page"),
    [
        ("", Page(*USUAL, limit=100)),
        ("limit=1", Page(*USUAL, limit=1)),
        ("limit=1000", Page(*USUAL, limit=1000)),
        ("unknown=1&&limit=1", Page(*USUAL, limit=1)),
        ("cursor=1", Page(*USUAL, before_seq=1, limit=100)),
        ("cursor=1.0", Page(*USUAL, before_seq=1, limit=100, upto_z=0)),
        ("cursor=12.34", Page(*USUAL, before_seq=12, limit=100, upto_z=34)),
        ("cursor=999999999", Page(*USUAL, before_seq=999_999_999, limit=100)),
        *[
            (f"state={state}", Page(*USUAL, state=state, limit=100))
            for state in ("begun", "certified", "refused", "abandoned", "disputed")
        ],
        ("invoiceNumber=F-1", Page(*EVER, number="F-1", limit=100)),
        ("invoiceNumber=F-1&state=refused", Page(*EVER, number="F-1", state="refused", limit=100)),
        (
            "invoiceNumber=F-1&from=2026-01-01&to=2026-01-01",
            Page(1_767_225_600_000, 1_767_312_000_000, number="F-1", limit=100),
        ),
    ],
)
async def test_a_query_is_a_page(served: Served, asked: list[tuple[Page, str]], query: str, page: Page) -> None:
    """The last 31 days, or the whole journal where a number is asked for without a range; in each of the states."""
    answer = await served.get(f"certifications?{query}", headers={"accept-language": "fr"})
    assert answer.json() == {"nim": NIM, "count": 0, "next": None, "certifications": []}
    assert asked == [(page, "fr")]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("state=open", "state"),
        ("state=", "state"),
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("cursor=0", "cursor"),
        ("cursor=1.", "cursor"),
        ("cursor=1.x", "cursor"),
        ("cursor=1000000000", "cursor"),
        ("format=xlsx", "format"),
        ("format=", "format"),
        ("dialect=excel", "dialect"),
        ("format=csv&dialect=x", "dialect"),
    ],
)
async def test_what_cannot_be_asked_names_its_parameter(
    served: Served, asked: list[tuple[Page, str]], query: str, field: str
) -> None:
    """422, and nothing was read."""
    answer = await served.get(f"certifications?{query}")
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)
    assert asked == []


@pytest.mark.parametrize(
    "accept",
    ["", "application/json", "*/*", "text/html", "image/png, */*;q=0.1", "application/json, text/csv", "TEXT/PLAIN"],
)
async def test_json_is_given_where_no_file_is_asked_for_first(
    served: Served, asked: list[tuple[Page, str]], accept: str
) -> None:
    """The first form of `Accept` that there is; what cannot be given as asked comes as JSON."""
    answer = await served.get("certifications", headers={"accept": accept})
    assert answer.headers["content-type"] == "application/json"
    assert len(asked) == 1


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
    served: Served, opened: Opened, asked: list[tuple[Page, str]], how: dict[str, Any]
) -> None:
    """However they are asked for; `format` goes before `Accept`."""
    opened(0)
    headers = {"accept": how.get("accept", "application/json")}
    answer = await served.get(f"certifications?{how.get('query', '')}", key=ROLE_KEYS["seller"], headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (403, "ROLE_NOT_ALLOWED")
    json = await served.get("certifications?format=json", key=ROLE_KEYS["seller"], headers={"accept": "text/csv"})
    assert (json.status_code, len(asked)) == (200, 1)


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("times", [(USUAL[0] - 1, USUAL[0]), (NOW - DAY, NOW - DAY)])
async def test_a_seller_sees_the_open_period(
    served: Served, opened: Opened, asked: list[tuple[Page, str]], times: tuple[int, int], is_known: bool
) -> None:
    """Nothing of before it, also where the daemon has not read the totals yet; who may see reports sees all that the range has."""
    since, start = times
    opened(since, is_known=is_known)
    for role in ("seller", "reader"):
        await served.get("certifications", key=ROLE_KEYS[role])
    assert [page.start for page, _ in asked] == [start, USUAL[0]]


@pytest.mark.parametrize(
    ("form", "dialect", "made_by"),
    [("jsonl", "", "as_jsonl"), ("csv", "", "as_csv"), ("csv", "excel-fr", "as_excel"), ("jsonl", "excel-fr", "as_jsonl")],
)  # fmt: skip
def test_a_file_is_of_the_form_that_was_asked_for(form: str, dialect: str, made_by: str) -> None:
    """Lines of JSON, or CSV, or CSV as Excel opens it in French, with the box's own time."""
    lines = journal._lines(form, dialect, "Africa/Ouagadougou")
    assert getattr(lines, "func", lines) is getattr(journal_files, made_by)
    assert getattr(lines, "keywords", {}) == ({"zone": zone("Africa/Ouagadougou")} if made_by == "as_excel" else {})
