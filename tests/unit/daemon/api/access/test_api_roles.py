"""Every role against every endpoint (decision 28): this table is what the API does."""

import re

import msgspec
import pytest
from support.api import ENDED_KEY, INVOICE, NIM, NOW, ROLE_KEYS, Ring, Served, UseCases

from daemon.api.service import routes_by
from daemon.core.people import ROLES, may
from daemon.range_reports.table import RANGE_REPORTS

LOOK, CERTIFY, REPORT, CLOSE = "look", "certify", "report", "close"
NEEDED = {
    ("GET", "/v1/me"): LOOK,
    ("GET", "/info"): LOOK,
    ("GET", "/certifications"): LOOK,
    ("GET", "/certifications/{code:str}"): LOOK,
    ("GET", "/certifications/{code:str}/qr.svg"): LOOK,
    ("GET", "/certifications/{code:str}/qr.png"): LOOK,
    ("GET", "/requests/{key:path}"): CERTIFY,
    ("DELETE", "/requests/{key:path}"): CERTIFY,
    ("POST", "/certify"): CERTIFY,
    ("POST", "/credit-note"): CERTIFY,
    ("GET", "/events"): REPORT,
    ("GET", "/reports"): REPORT,
    ("GET", "/reports/x"): REPORT,
    **{("GET", f"/reports/{each.name}"): REPORT for each in RANGE_REPORTS},
    ("GET", "/reports/articles"): REPORT,
    ("GET", "/reports/z/{z:str}"): REPORT,
    **{
        (method, f"/certifications/{{code:str}}/{verb}"): LOOK
        for method, verb in (("GET", "ticket"), ("POST", "print"))
    },
    **{
        (method, f"/reports/{report}/{verb}"): REPORT
        for report in (
            *("x", "z/{z:str}", "articles", "month/{period:str}", "year/{period:str}"),
            *(each.name for each in RANGE_REPORTS),
        )
        for method, verb in (("GET", "ticket"), ("POST", "print"))
    },
    ("GET", "/reports/articles/{number:int}"): REPORT,
    ("GET", "/reports/articles/{number:int}/ticket"): REPORT,
    ("POST", "/reports/articles/{number:int}/print"): REPORT,
    ("GET", "/reports/month"): REPORT,
    ("GET", "/reports/month/{period:str}"): REPORT,
    ("POST", "/reports/month"): CLOSE,
    ("GET", "/reports/year"): REPORT,
    ("GET", "/reports/year/{period:str}"): REPORT,
    ("POST", "/reports/year"): CLOSE,
    ("GET", "/reports/given/{number:int}"): REPORT,
    ("POST", "/reports/articles"): CLOSE,
    ("POST", "/reports/z"): CLOSE,
    ("POST", "/cancel-pending"): CLOSE,
    ("POST", "/cash"): CERTIFY,
    ("POST", "/test/clock"): CERTIFY,
    ("GET", "/cash"): REPORT,
    ("GET", "/outages"): REPORT,
    ("GET", "/outages/{outage:int}/declaration"): REPORT,
    ("POST", "/outages/{outage:int}/notified"): CLOSE,
}
ANSWERED = {"/certify", "/reports/z", "/cancel-pending", "/reports/x", "/v1/me"}
"""With use cases that only note what they are asked, these give an answer."""


def test_the_table_names_every_endpoint() -> None:
    """And nothing that is not there: a new endpoint gets its line here, or nobody but a technician may use it."""
    found = {}
    for handler in (*routes_by("machine"), *routes_by("key")):
        found.update(
            {(method, path): handler.opt["right"] for method in handler.http_methods for path in handler.paths}
        )
    assert found == NEEDED


@pytest.mark.parametrize("role", ROLES)
async def test_who_may_what(served: Served, usecases: UseCases, role: str) -> None:
    """At each endpoint: 403 ROLE_NOT_ALLOWED, naming the roles that may, before anything is done; nobody else is refused for their role."""
    headers = {"authorization": f"Bearer {ROLE_KEYS[role]}", "content-type": "application/json"}
    for (method, path), right in NEEDED.items():
        url = path if path.startswith("/v1") else f"/v1/mcf/{NIM}{re.sub('{code:str}', 'X', path)}"
        url = re.sub(r"{\w+:\w+}", "1", url)
        usecases.calls.clear()
        if may(role, right):
            if path in ANSWERED:
                body = INVOICE if method == "POST" else None
                answer = await served.client.request(method, url, headers=headers, json=body)
                assert answer.status_code in {200, 201}, url
            continue
        answer = await served.client.request(method, url, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (403, "ROLE_NOT_ALLOWED"), url
        assert role in answer.json()["detail"], url
        assert usecases.calls == [], url


@pytest.mark.parametrize("end", [1, NOW - 1, NOW])
async def test_a_key_that_has_come_to_its_end(
    served: Served, usecases: UseCases, monkeypatch: pytest.MonkeyPatch, end: int
) -> None:
    """401 from that moment on, saying why."""
    monkeypatch.setitem(Ring.owners, ENDED_KEY, msgspec.structs.replace(Ring.owners[ENDED_KEY], expires_at=end))
    answer = await served.post(json=INVOICE, key=ENDED_KEY)
    assert (answer.status_code, answer.json()["code"]) == (401, "UNAUTHENTICATED")
    assert "come to its end" in answer.json()["detail"]
    assert usecases.calls == []
