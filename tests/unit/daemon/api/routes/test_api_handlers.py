from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest
from structlog.testing import capture_logs
from support.api import INVOICE, LIVE_KEY, NIM, NOW, TEST_KEY, Serve, Served, UseCases, closure, record

from common.language import Text
from daemon.api.routes import health
from daemon.core.delivery import Backlog
from daemon.core.errors import KeyReused, MachineBusy, MachineOffline
from daemon.usecases.worker.machine_workers import MachineWorkers

DAY = 86_400_000


async def test_certify_gives_the_receipt(served: Served, usecases: UseCases) -> None:
    """200 with the shape of the service contract; the body reached the use case exactly."""
    answer = await served.post(
        content=b'{"invoiceNumber":"F-1","x":1.10}', headers={"content-type": "application/json"}
    )
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["codeSecef"] == record().code
    assert answer.json()["nim"] == NIM
    name, (body, call, credit) = usecases.calls[0]
    assert (name, body, credit) == ("certify", {"invoiceNumber": "F-1", "x": Decimal("1.10")}, False)
    assert str(body["x"]) == "1.10"
    assert (call.key, call.fingerprint) == ("", b"")
    assert call.request_id == answer.headers["x-request-id"]


async def test_a_credit_note_goes_to_the_same_use_case(served: Served, usecases: UseCases) -> None:
    """With `credit` said."""
    assert (await served.post("credit-note", json=INVOICE)).status_code == 200
    assert usecases.calls[0][1][2] is True


async def test_z_gives_the_stored_closure(served: Served, usecases: UseCases) -> None:
    """201 with the very bytes of the ledger."""
    answer = await served.post("reports/z", json={})
    assert (answer.status_code, answer.content) == (201, closure().body)


@pytest.mark.parametrize("path", ["reports/z", "cancel-pending"])
@pytest.mark.parametrize("kind", [None, "application/json", "text/plain"])
async def test_z_and_cancel_pending_need_no_body(served: Served, path: str, kind: str | None) -> None:
    """Whatever the content type says of nothing, as the published client does."""
    answer = await served.post(path, headers={"content-type": kind} if kind else {})
    assert answer.status_code in (200, 201)


async def test_a_replay_says_so_and_is_the_same(served: Served, usecases: UseCases) -> None:
    """`Idempotency-Replayed: true`, byte for byte the first answer, the first status."""
    for path in ("certify", "credit-note", "reports/z", "cancel-pending"):
        usecases.replayed = False
        first = await served.post(path, json=INVOICE, headers={"idempotency-key": "k"})
        usecases.replayed = True
        again = await served.post(path, json=INVOICE, headers={"idempotency-key": "k"})
        assert "idempotency-replayed" not in first.headers
        assert again.headers["idempotency-replayed"] == "true"
        assert (again.status_code, again.content) == (first.status_code, first.content)


async def test_the_fingerprint_tells_requests_apart(served: Served, usecases: UseCases) -> None:
    """The same request has the same; another body, or the same body at another path, has another."""
    for path, body in (
        ("certify", b'{"a":1}'),
        ("certify", b'{"a":1}'),
        ("certify", b'{"a":2}'),
        ("credit-note", b'{"a":1}'),
    ):
        await served.post(path, content=body, headers={"idempotency-key": "k 1", "content-type": "application/json"})
    calls = [told[1] for _, told in usecases.calls]
    assert {call.key for call in calls} == {"k 1"}
    prints = [call.fingerprint for call in calls]
    assert prints[0] == prints[1]
    assert len({*prints}) == 3
    assert {len(found) for found in prints} == {16}


@pytest.mark.parametrize("key", [b"", b"x" * 201, b"caf\xc3\xa9", b"a\tb"])
async def test_an_idempotency_key_has_its_bounds(served: Served, usecases: UseCases, key: bytes) -> None:
    """1 to 200 printable characters, on any POST; otherwise 422 that names the header, and nothing was done."""
    for path in ("certify", "credit-note", "reports/z", "cancel-pending"):
        answer = await served.post(path, json=INVOICE, headers={b"idempotency-key": key})
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "Idempotency-Key")
    assert usecases.calls == []
    assert (await served.post(json=INVOICE, headers={"idempotency-key": "x" * 200})).status_code == 200


async def test_trouble_becomes_its_problem(served: Served, usecases: UseCases) -> None:
    """Through the whole stack, with Retry-After and the request's id."""
    for trouble, status, code in (
        (KeyReused(), 409, "IDEMPOTENCY_KEY_REUSED"),
        (MachineBusy("queue"), 503, "MACHINE_BUSY"),
        (MachineOffline("gone"), 503, "BRIDGE_OFFLINE"),
    ):
        usecases.trouble = trouble
        answer = await served.post(json=INVOICE)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert answer.headers["content-type"] == "application/problem+json"
        assert ("retry-after" in answer.headers) == (status == 503)


BAD_BODIES: list[tuple[bytes, str, tuple[int, str]]] = [
    (b"{", "application/json", (400, "INVALID_JSON")),
    (b"", "application/json", (400, "INVALID_JSON")),
    (b'{"a":NaN}', "application/json", (400, "INVALID_JSON")),
    (b'{"a":1,"a":1}', "application/json", (400, "INVALID_JSON")),
    (b'{"a":"\xff"}', "application/json", (400, "INVALID_JSON")),
    (b'{"a":' * 2000 + b"1" + b"}" * 2000, "application/json", (400, "INVALID_JSON")),
    (b"[" * 500_000, "application/json", (400, "INVALID_JSON")),
    (b"{}", "text/plain", (415, "UNSUPPORTED_MEDIA_TYPE")),
    (b" " * (1024 * 1024 + 1), "application/json", (413, "TOO_LARGE")),
]


@pytest.mark.parametrize(("body", "kind", "expected"), BAD_BODIES, ids=range(len(BAD_BODIES)))
async def test_a_bad_body_touches_nothing(
    served: Served, usecases: UseCases, body: bytes, kind: str, expected: tuple[int, str]
) -> None:
    """Refused by name before any use case is asked, on every POST that takes a body."""
    for path in ("certify", "credit-note"):
        answer = await served.post(path, content=body, headers={"content-type": kind})
        assert (answer.status_code, answer.json()["code"]) == expected
    assert usecases.calls == []
    assert (await served.post(json=INVOICE)).status_code == 200


async def test_a_chunked_body_is_counted_while_it_comes(served: Served, usecases: UseCases) -> None:
    """It says no length; it is refused all the same, and the connection is not left hanging."""

    async def endless() -> Any:
        for _ in range(40):
            yield b" " * 65536

    answer = await served.post(content=endless(), headers={"content-type": "application/json"})
    assert (answer.status_code, usecases.calls) == (413, [])


async def test_x_is_of_the_open_period_or_of_a_range(served: Served, usecases: UseCases) -> None:
    """With `from` or `to` it is periodic."""
    await served.get("reports/x")
    await served.get("reports/x?from=2026-01-01")
    await served.get("reports/x?unknown=1")
    assert [name for name, _ in usecases.calls] == ["x_report", "x_between", "x_report"]


async def test_a_range_has_its_defaults(served: Served, usecases: UseCases) -> None:
    """The last 31 days, for A and the history."""
    await served.get("reports/a")
    await served.get("reports")
    (_, a_range), (_, history_range) = usecases.calls
    assert a_range == (NOW + 1 - 31 * DAY, NOW + 1)
    assert history_range == (*a_range, 0, 1000)


@pytest.mark.parametrize("offset", ["%2B01:00", "+01:00", "%2b01%3A00"])
async def test_an_offset_may_come_escaped_or_not(served: Served, usecases: UseCases, offset: str) -> None:
    """A `+` in a query is a space to some and a plus to others; here it is what a timestamp means by it."""
    await served.get(f"reports/a?from=2026-01-01T01:00:00{offset}&to=2026-01-02T00:00:00Z")
    assert usecases.calls == [("a_report", (1_767_225_600_000, 1_767_312_000_000))]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("from=yesterday", "from"),
        ("from=", "from"),
        ("to=2026-13-01", "to"),
        ("from=2026-01-01T00:00:00", "from"),
        ("from=2026-02-01&to=2026-01-01", "from"),
        ("from=2026-01-01&from=2026-01-02", "from"),
        ("to=%ff", "to"),
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=x", "limit"),
        ("limit=1.0", "limit"),
        ("limit=%D9%A1", "limit"),
        ("after=-1", "after"),
        ("after=99999999999999999999", "after"),
    ],
)
async def test_an_unreadable_query_names_its_parameter(
    served: Served, usecases: UseCases, query: str, field: str
) -> None:
    """422, and the ledger was not asked."""
    answer = await served.get(f"reports?{query}")
    assert (answer.status_code, answer.json()["code"]) == (422, "INVALID_REQUEST")
    assert answer.json()["errors"][0]["field"] == field
    assert usecases.calls == []


async def test_the_history_is_paged(served: Served, usecases: UseCases) -> None:
    """`limit` and `after` go through; the answer has its three fields."""
    answer = await served.get("reports?from=2026-01-01&to=2026-01-01&limit=5&after=7")
    assert usecases.calls == [("history", (1_767_225_600_000, 1_767_312_000_000, 7, 5))]
    assert answer.json() == {"nim": NIM, "count": 0, "reports": []}


async def test_info_and_cancel_pending(served: Served, usecases: UseCases) -> None:
    """Both answer what their use case says."""
    assert (await served.get("info")).json() == {"nim": NIM}
    assert (await served.post("cancel-pending")).json()["wasPending"] is False


async def test_live_answers_without_a_key(served: Served) -> None:
    """As long as the service runs."""
    assert (await served.client.get("/health/live")).json() == {"status": "live", "version": "1"}


async def test_ready_says_which_machine_is_not(served: Served, workers: MachineWorkers) -> None:
    """503 until the live machine answers; the sandbox does not count, and no path of the box is told."""
    worker = workers.get(NIM, "live")
    assert worker is not None
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
    worker.take_code("TESTFACTABCDEFGHJKLMNPQR")
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
    for source, shown in ((figures, [lane]), (broken, None), (slow, None)):
        served = await serve(upstream=source)
        answer = await served.get("/health/ready")
        assert (answer.status_code, answer.json()["upstream"]) == (503, shown)
    with capture_logs() as lines:
        assert (await (await serve()).get("/health/ready")).json()["upstream"] is None
    assert [line["event"] for line in lines] == ["request.answered"]


async def test_strangers_are_not_told_what_headquarters_said(serve: Serve) -> None:
    """Without a key only that it failed: the text may name hosts, users and tokens."""

    async def figures() -> list[Backlog]:
        return [Backlog(NIM, "live", 3, 0, NOW, "login of mcfd@hq.internal failed: token t0k3n", 0, 0)]

    served = await serve(upstream=figures)
    told = (await served.client.get("/health/ready")).text
    assert "failed" in told
    assert "hq.internal" not in told
    assert "t0k3n" not in told
    assert "hq.internal" in (await served.get("/health/ready")).text


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [("GET", "certify", "POST"), ("DELETE", "reports/z", "POST"), ("POST", "reports/x", "GET"), ("PUT", "info", "GET")],
)
async def test_another_method_is_refused(served: Served, method: str, path: str, allow: str) -> None:
    """405 with Allow, as a problem."""
    answer = await served.client.request(method, f"/v1/mcf/{NIM}/{path}")
    assert (answer.status_code, answer.json()["code"]) == (405, "METHOD_NOT_ALLOWED")
    assert allow in answer.headers["allow"]


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v1/mcf", f"/v1/mcf/{NIM}", f"/v1/mcf/{NIM}/nothing", "/v2/me", "/%2e%2e/etc/passwd"]
)
async def test_nothing_there_is_a_problem_too(served: Served, path: str) -> None:
    """404 in the same shape."""
    answer = await served.client.get(path)
    assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND")
    assert answer.headers["content-type"] == "application/problem+json"


async def test_a_test_key_works_on_the_sandbox(served: Served, usecases: UseCases) -> None:
    """Decision 23: the same path, the other book."""
    await served.post(json=INVOICE)
    await served.post(json=INVOICE, key=TEST_KEY)
    assert usecases.modes == ["live", "test"]


@pytest.mark.parametrize(
    ("path", "methods"),
    [("reports/articles", "GET, OPTIONS, POST"), ("reports/a", "GET, OPTIONS"), ("cash", "GET, OPTIONS, POST")],
)
async def test_what_a_path_takes_may_be_asked(served: Served, path: str, methods: str) -> None:
    """OPTIONS is answered by the router, with all methods of the path, for a key of any role."""
    headers = {"Authorization": f"Bearer {LIVE_KEY}"}
    answer = await served.client.request("OPTIONS", f"/v1/mcf/{NIM}/{path}", headers=headers)
    assert answer.status_code == 204
    assert answer.headers["allow"] == methods


async def test_a_z_s_fingerprint_is_of_its_body_too(served: Served, usecases: UseCases) -> None:
    """The same key with another body is another request, also where the body says nothing."""
    for body in (b"", b"{}", b'{"a":1}', b'{"a":1}'):
        headers = {"idempotency-key": "k 1", "content-type": "application/json"}
        await served.post("reports/z", content=body, headers=headers)
    prints = [told[0].fingerprint for name, told in usecases.calls if name == "close_period"]
    assert len(prints) == 4
    assert len({*prints}) == 3


async def test_a_key_has_two_reports_by_article_at_a_time(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A third is told to come back; once one has ended there is room again."""
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


@pytest.mark.parametrize(
    ("query", "after", "limit"),
    [
        ("", 0, 1000), ("limit=1", 0, 1), ("limit=1000", 0, 1000), ("after=0", 0, 1000), ("after=999999999&limit=7", 999_999_999, 7),
    ],
)  # fmt: skip
async def test_a_page_of_closures(
    served: Served, monkeypatch: pytest.MonkeyPatch, query: str, after: int, limit: int
) -> None:
    """Those after a number, a thousand at the most."""
    asked: list[tuple[object, ...]] = []

    async def history(_: object, __: int, ___: int, *page: int) -> tuple[()]:
        asked.append(page)
        return ()

    monkeypatch.setattr("daemon.usecases.reports.report.history", history)
    assert (await served.get(f"reports?{query}")).json() == {"nim": NIM, "count": 0, "reports": []}
    assert asked == [(after, limit)]


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "after=-1", "after=1000000000"])
async def test_no_such_page_of_closures(served: Served, query: str) -> None:
    """The field is named."""
    answer = await served.get(f"reports?{query}")
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == [query.partition("=")[0]]
