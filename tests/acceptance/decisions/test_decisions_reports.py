"""Decisions 15 and 18 to 20: empty periods, order, ranges, the A report and the history."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from support.shop import Shop, invoice, wait_for
from support.till import certified, fresh, invalid


def millis(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def ask(shop: Shop, path: str = "reports/a", **query: str) -> dict[str, Any]:
    """`from_` and the rest of the query; the answer of a report that is granted."""
    answer = shop.get(path, **{name.rstrip("_"): value for name, value in query.items()})
    assert answer.status_code == 200, answer.text
    return answer.json()


def one(shop: Shop) -> datetime:
    """The instant of a certification that the totals already hold."""
    at = datetime.fromisoformat(certified(shop.certify(invoice(fresh())))["certifiedAt"])
    wait_for(lambda: ask(shop, from_=millis(at))["certs_count"])
    return at


def test_decision_18_a_timestamp_is_an_instant(shop: Shop) -> None:
    """`from ≤ t < to`, to the millisecond, with any offset."""
    at, tick = one(shop), timedelta(milliseconds=1)
    assert ask(shop, from_=millis(at), to=millis(at + tick))["certs_count"] == 1
    assert ask(shop, from_=millis(at + tick))["certs_count"] == 0
    assert ask(shop, from_=millis(at - tick), to=millis(at))["certs_count"] == 0
    there = (at + timedelta(hours=2)).replace(tzinfo=None).isoformat(timespec="milliseconds") + "+02:00"
    report = ask(shop, from_=there, to=millis(at + tick))
    assert (report["from"], report["certs_count"]) == (millis(at), 1)
    unescaped = shop.http.get(f"/v1/mcf/EL02000015-1/reports/a?from={there}", headers=shop.headers())
    assert unescaped.json()["from"] == millis(at)


def numbers(report: dict[str, Any]) -> list[int]:
    return [entry["z_number"] for entry in report.get("closures", report.get("reports"))]


def test_decision_18_a_parameter_twice_is_refused(shop: Shop) -> None:
    """Which of the two was meant is not guessed at; an unknown parameter is nothing to us."""
    url = "/v1/mcf/EL02000015-1/reports/a?from=2026-01-01&from=2026-02-01"
    assert invalid(shop.http.get(url, headers=shop.headers())).keys() == {"from"}
    assert ask(shop, page="2")["kind"] == "A"


def test_decision_20_the_history_is_paged_by_z_number(shop: Shop) -> None:
    """Oldest first; `limit` bounds a page, `after` goes on from it; `count` is the number returned; `id` is the Z's report_id."""
    closures = [shop.close_period().json() for _ in range(5)]
    first = closures[0]["z_number"] - 1
    page = ask(shop, "reports", after=str(first), limit="2")
    assert (page["count"], numbers(page)) == (2, [first + 1, first + 2])
    assert [record["id"] for record in page["reports"]] == [z["report_id"] for z in closures[:2]]
    assert all(UUID(record["id"]) for record in page["reports"])
    rest = ask(shop, "reports", after=str(first + 2), limit="1000")
    assert (rest["count"], numbers(rest)) == (3, [first + 3, first + 4, first + 5])
    assert ask(shop, "reports", after=str(first + 5)) == {"nim": "EL02000015-1", "count": 0, "reports": []}
    everything = numbers(ask(shop, "reports"))
    assert everything == sorted(everything)
