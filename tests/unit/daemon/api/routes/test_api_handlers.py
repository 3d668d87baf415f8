"""Readiness and metrics as strangers and tills see them, and what a path takes."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs
from support.api import NIM, NOW, Serve, Served

from common.language import Text
from daemon.api import rendered_paper
from daemon.api.routes import health
from daemon.core.delivery import Backlog
from daemon.core.errors import OutcomeNotStored
from daemon.paper.pdf import PdfFailed
from daemon.usecases.worker.machine_workers import MachineWorkers


async def test_ready_says_which_machine_is_not(served: Served, workers: MachineWorkers) -> None:
    """503 until the live machine answers; the sandbox does not count, and no path of the box is in the answer."""
    worker = workers.get(NIM, "live")
    worker.offline_reason = Text("cannot open /dev/mcf-EL02000015")
    answer = await served.client.get("/health/ready")
    assert (answer.status_code, answer.json()["status"]) == (503, "not ready")
    machine = answer.json()["machines"]
    assert [(found["nim"], found["connected"], found["lastError"]) for found in machine] == [
        (NIM, False, "cannot open the port")
    ]
    worker.opened(Any)  # type: ignore[arg-type]  # some machine
    answer = await served.client.get("/health/ready")
    assert (answer.status_code, answer.json()["status"]) == (200, "ready")
    worker.attempts.attention = "two invoices too many"
    answer = await served.client.get("/health/ready")
    assert (answer.status_code, answer.json()["machines"][0]["attention"]) == (503, "two invoices too many")
    worker.attempts.attention = ""
    worker.apply_code("TESTFACTABCDEFGHJKLMNPQR")
    answer = await served.client.get("/health/ready")
    machine = answer.json()["machines"][0]
    assert (answer.status_code, machine["testMode"]) == (503, True)
    assert "TESTFACT" in machine["attention"]


async def test_a_machine_switched_off_does_not_make_the_box_unready(serve: Serve) -> None:
    """`enabled = false` is on purpose."""
    served = await serve(disabled=frozenset({NIM}))
    assert (await served.client.get("/health/ready")).status_code == 200


async def test_ready_shows_upstream_and_does_not_depend_on_it(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its figures are in the body; when they cannot be had, the rest still is."""
    monkeypatch.setattr(health, "FIGURES_PATIENCE", 0.05)

    async def figures() -> list[Backlog]:
        return [Backlog(NIM, "live", 3, 0, NOW, "refused", 0, 0)]

    async def broken() -> Any:
        raise RuntimeError

    async def slow() -> Any:
        await asyncio.sleep(60)

    waiting = {"waiting": 3, "parked": 0, "oldestAt": "2026-02-02T02:40:00.000Z", "lastError": "refused"}
    lane = {"nim": NIM, "mode": "live", **waiting, "lastErrorAt": None, "lastSentAt": None}
    for source, text in ((figures, [lane]), (broken, None), (slow, None)):
        served = await serve(upstream=source)
        answer = await served.get("/health/ready")
        assert (answer.status_code, answer.json()["upstream"]) == (503, text)
    with capture_logs() as lines:
        assert (await (await serve()).get("/health/ready")).json()["upstream"] is None
    assert [line["event"] for line in lines] == ["request.answered"]


async def test_strangers_are_not_told_what_headquarters_said(serve: Serve) -> None:
    """Without a key only that it failed: the text may name hosts, users and tokens."""

    async def figures() -> list[Backlog]:
        return [Backlog(NIM, "live", 3, 0, NOW, "login of mcfd@hq.internal failed: token t0k3n", 0, 0)]

    served = await serve(upstream=figures)
    result = (await served.client.get("/health/ready")).text
    assert "failed" in result
    assert "hq.internal" not in result
    assert "t0k3n" not in result
    assert "hq.internal" in (await served.get("/health/ready")).text


async def test_a_key_has_two_reports_by_article_at_a_time(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A third gets 429; once one has ended there is room again."""
    begun, may_end = asyncio.Semaphore(0), asyncio.Event()

    async def report(*_: object) -> dict[str, str]:
        begun.release()
        await may_end.wait()
        return {}

    monkeypatch.setattr("daemon.api.routes.reports.articles_report", report)
    two = [asyncio.ensure_future(served.get("reports/articles?from=2026-01-01")) for _ in range(2)]
    for _ in two:
        await begun.acquire()
    refused = await served.get("reports/articles?from=2026-01-01")
    assert (refused.status_code, refused.json()["code"]) == (429, "TOO_MANY_REQUESTS")
    may_end.set()
    assert [answer.status_code for answer in await asyncio.gather(*two)] == [200, 200]
    assert (await served.get("reports/articles?from=2026-01-01")).status_code == 200


@pytest.mark.parametrize("error", [PdfFailed("no font"), OutcomeNotStored()])
async def test_a_certification_is_answered_without_the_paper_that_could_not_be_made(
    served: Served, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """The invoice is certified: a warning says that the document is left out."""

    def fails(_: object) -> bytes:
        raise error

    monkeypatch.setattr(rendered_paper, "as_pdf", fails)
    plain = (await served.post(json={})).json()
    answer = await served.post(json={}, params={"document": "pdf"})
    assert (answer.status_code, answer.json()["codeSecef"], "document" in answer.json()) == (
        200,
        plain["codeSecef"],
        False,
    )
    assert answer.json()["warnings"][-1]["code"] == "DOCUMENT_FAILED"


@pytest.mark.parametrize(
    ("disabled", "modes"),
    [(frozenset(), {"live", "test"}), (frozenset({NIM}), {"test"}), (frozenset({"EL09999999-1"}), {"live", "test"})],
)
async def test_a_machine_switched_off_is_none_that_fails(
    serve: Serve, disabled: frozenset[str], modes: set[str]
) -> None:
    """It is left out; its sandbox, which goes on, and the other machines are there."""
    served = await serve(disabled=disabled)
    text = (await served.client.get("/metrics")).text
    assert {mode for mode in ("live", "test") if f'mode="{mode}"' in text} == modes
