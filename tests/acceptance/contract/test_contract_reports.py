"""The service contract, "States and transitions" and the reports: X, Z, A and the history, over HTTP on a real line. Decisions 15 and 18 to 20: ranges, and the
history by pages."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from support.shop import NIM, Shop, invoice, wait_for
from support.till import certified, fresh, invalid


def mixed(number: str) -> dict[str, Any]:
    """1 000 of group B and 300 of group A."""
    items = [
        {"name": "Savon", "taxGroup": "B", "unitPrice": 1000, "quantity": 1},
        {"name": "Pain", "taxGroup": "A", "unitPrice": 150, "quantity": 2},
    ]
    return invoice(number, items=items, payments=[{"method": "E", "amount": 1300}])


def test_x_shows_the_open_period(shop: Shop) -> None:
    """Totals, breakdown by group and by type, and the FVC range, since the last Z."""
    last = shop.closed()
    first = certified(shop.certify(mixed(fresh())))
    second = certified(shop.certify(invoice(fresh(), 2000, invoiceType="FT")))
    report = shop.x_with(2)
    assert (report["kind"], report["nim"]) == ("X", NIM)
    assert (report["total_ttc"], report["total_ht"], report["total_tva"]) == (3300, 847 + 300 + 1695, 153 + 305)
    assert report["by_group"] == [
        {"group": "A", "ht": 300, "tva": 0, "ttc": 300},
        {"group": "B", "ht": 847 + 1695, "tva": 153 + 305, "ttc": 3000},
    ]
    assert report["by_type"] == [
        {"invoice_type": "FT", "count": 1, "total_ttc": 2000},
        {"invoice_type": "FV", "count": 1, "total_ttc": 1300},
    ]
    assert (report["fvc_start"], report["fvc_end"]) == (first["fvc"], second["fvc"])
    assert report["period_start"] == last["period_end"]


def test_x_counts_what_was_begun_and_not_certified(own_shop: Shop) -> None:
    """SFE 4.3 m: an invoice that the machine refused is an incomplete sale; one that was refused before the machine was asked is none."""
    shop = own_shop
    assert shop.certify(invoice("I-1", payments=[])).status_code == 422
    shop.machines[0].order("mode", mode="blocked")
    assert shop.certify(invoice("I-2")).status_code == 422
    shop.machines[0].order("mode", mode="active")
    certified(shop.certify(invoice("I-3")))
    assert shop.x_with(1)["incomplete"] == 1


def test_z_freezes_the_period_and_starts_an_empty_one(shop: Shop) -> None:
    """201; the figures of X with a number, a UUID, an instant and the machine's counters; then X is empty and begins there."""
    shop.closed()
    receipt = certified(shop.certify(mixed(fresh())))
    x = shop.x_with(1)
    z = shop.closed()
    assert z["kind"] == "Z"
    UUID(z["report_id"])
    assert z["mcf_counters"] == {name: receipt[name] for name in ("tc", "fvc", "frc")}
    assert (z["mcf_counters"]["tc"], z["mcf_counters"]["fvc"], z["mcf_counters"]["frc"]) == shop.machines[0].counters
    shared = (x.keys() & z.keys()) - {"kind", "period_end"}
    assert {name: z[name] for name in shared} == {name: x[name] for name in shared}
    assert z["period_end"] == z["created_at"]
    empty = shop.get("reports/x").json()
    assert (empty["certs_count"], empty["total_ttc"], empty["by_group"], empty["by_type"]) == (0, 0, [], [])
    assert empty["period_start"] == z["period_end"]


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


def test_the_service_keeps_each_closure_and_what_it_keeps_is_sound(shop: Shop) -> None:
    """The authoritative copy: after all the above, `mcfd verify` recomputes every total, closure and the chain."""
    shop.verify()
