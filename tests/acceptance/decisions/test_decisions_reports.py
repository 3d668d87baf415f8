"""Decisions 16 to 20: empty periods, order, ranges, the A report and the history."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from support.shop import Machine, Shop, invoice, wait_for
from support.till import certified, fresh, invalid

USED = "EL02000088-1"
"""A machine that has certified elsewhere before it came here."""


def opened(folder: Path) -> Shop:
    used = Machine(folder, USED)
    used.start()
    used.order("counters", tc=41, fvc=30, frc=9)
    used.stop()
    return Shop(folder, machines=(Machine(folder), used))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with opened(tmp_path_factory.mktemp("shop")) as shop:
        yield shop.start()


@pytest.fixture(scope="module")
def new_shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Nobody sells or closes in it."""
    with opened(tmp_path_factory.mktemp("new")) as shop:
        yield shop.start()


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def millis(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def ask(shop: Shop, path: str = "reports/a", **query: str) -> dict[str, Any]:
    """`from_` and the rest of the query; the answer of a report that is granted."""
    answer = shop.get(path, **{name.rstrip("_"): value for name, value in query.items()})
    assert answer.status_code == 200, answer.text
    report: dict[str, Any] = answer.json()
    return report


# -- 16, 17 -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["live", "test"])
@pytest.mark.parametrize("nim", ["EL02000015-1", USED])
def test_decision_16_x_before_anything(new_shop: Shop, nim: str, mode: str) -> None:
    """Nothing certified, nothing closed: `period_start = period_end =` now, zero totals, nothing in the lists."""
    before = millis(datetime.now(UTC))
    report = new_shop.get("reports/x", nim=nim, mode=mode).json()
    assert before <= report["period_start"] == report["period_end"] <= millis(datetime.now(UTC))
    assert (report["certs_count"], report["total_ttc"], report["total_ht"], report["total_tva"]) == (0, 0, 0, 0)
    assert (report["by_group"], report["by_type"]) == ([], [])


def test_decision_16_the_fvc_of_an_empty_period(shop: Shop) -> None:
    """Both ends are the last FVC known: 30 on a machine that came with it, after a sale that one, and after its Z still."""
    report = shop.get("reports/x", nim=USED).json()
    assert (report["fvc_start"], report["fvc_end"]) == (30, 30)
    certified(shop.certify(invoice(fresh()), nim=USED))
    report = shop.x_with(1, nim=USED)
    assert (report["fvc_start"], report["fvc_end"]) == (31, 31)
    shop.close_period(nim=USED)
    for report in (shop.get("reports/x", nim=USED).json(), shop.close_period(nim=USED).json()):
        assert (report["certs_count"], report["fvc_start"], report["fvc_end"]) == (0, 31, 31)


def test_decision_15_an_empty_period_may_be_closed_and_takes_a_number(shop: Shop) -> None:
    """201, with zero totals and the next number."""
    first, second = shop.close_period(), shop.close_period()
    assert (first.status_code, second.status_code) == (201, 201)
    assert second.json()["z_number"] == first.json()["z_number"] + 1
    assert (second.json()["certs_count"], second.json()["total_ttc"]) == (0, 0)


def test_decision_17_groups_and_types_are_sorted_and_only_those_that_occur(shop: Shop) -> None:
    """By letter and by type, in X, Z and A, whatever the order of the tickets."""
    since = shop.close_period().json()["created_at"]
    for kind, groups in (("FV", "PB"), ("ET", "C"), ("EV", "AF")):
        items = [{"name": group, "taxGroup": group, "unitPrice": 100} for group in groups]
        paid = [{"method": "E", "amount": 100 * len(groups)}]
        certified(shop.certify(invoice(fresh(), invoiceType=kind, items=items, payments=paid)))
    x = shop.x_with(3)
    for report in (x, shop.close_period().json(), ask(shop, from_=since)):
        assert [entry["group"] for entry in report["by_group"]] == ["A", "B", "C", "F", "P"]
        assert [entry["invoice_type"] for entry in report["by_type"]] == ["ET", "EV", "FV"]
        assert sum(entry["ttc"] for entry in report["by_group"]) == report["total_ttc"] == 500


# -- 18 -----------------------------------------------------------------------------------------------------------------


def one(shop: Shop) -> datetime:
    """The instant of a certification that the totals already hold."""
    at = moment(certified(shop.certify(invoice(fresh())))["certifiedAt"])
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


def test_decision_18_a_date_is_a_whole_day(shop: Shop) -> None:
    """In Ouagadougou, which is UTC, `to` included; and a range of one day is that day."""
    at = one(shop)
    today, earlier = at.date(), at.date() - timedelta(days=2)
    report = ask(shop, from_=f"{today}", to=f"{today}")
    assert (report["from"], report["to"]) == (f"{today}T00:00:00.000Z", f"{today + timedelta(days=1)}T00:00:00.000Z")
    assert report["certs_count"] > 0
    assert ask(shop, from_=f"{earlier}", to=f"{earlier}")["certs_count"] == 0
    mixed = ask(shop, from_=f"{earlier}", to=millis(at))
    assert (mixed["from"], mixed["to"]) == (f"{earlier}T00:00:00.000Z", millis(at))


def test_decision_18_a_day_is_one_of_the_configured_zone(tmp_path: Path) -> None:
    """On Kiritimati, 14 hours ahead, the first of March begins on the last of February at ten."""
    with Shop(tmp_path, config={"reports": {"timezone": "Pacific/Kiritimati"}}) as shop:
        shop.start()
        report = ask(shop, from_="2026-03-01", to="2026-03-02")
    assert (report["from"], report["to"]) == ("2026-02-28T10:00:00.000Z", "2026-03-02T10:00:00.000Z")


@pytest.mark.parametrize("path", ["reports/a", "reports"])
def test_decision_18_one_side_missing(shop: Shop, path: str) -> None:
    """`to` is now, `from` 31 days before `to`; the history does the same."""
    one(shop)
    z = shop.close_period().json()["z_number"]
    month, end = timedelta(days=31), date.fromisoformat("2026-05-31")
    if path == "reports/a":
        to_only = ask(shop, to=f"{end}")
        assert moment(to_only["to"]) - moment(to_only["from"]) == month
        from_only = ask(shop, from_=millis(datetime.now(UTC) - timedelta(hours=1)))
        assert abs(moment(from_only["to"]) - datetime.now(UTC)) < timedelta(seconds=10)
    hour_ago, far = datetime.now(UTC) - timedelta(hours=1), datetime.now(UTC) + timedelta(days=40)
    for query in ({}, {"from_": millis(hour_ago)}, {"to": millis(far - timedelta(days=10))}):
        assert z in numbers(ask(shop, path, **query)), query
    assert z not in numbers(ask(shop, path, to=millis(far)))
    assert z not in numbers(ask(shop, path, to=millis(hour_ago)))


def numbers(report: dict[str, Any]) -> list[int]:
    return [entry["z_number"] for entry in report.get("closures", report.get("reports"))]


BAD = [
    "yesterday",
    "2026-13-01",
    "2026-02-30",
    "2026-2-1",
    "20260201",
    "2026-02-01T10:00:00",
    "2026-02-01 10:00:00Z",
    "2026-02-01T25:00:00Z",
    "2026-02-01T10:00:00+2",
    "1770000000",
    "",
    "٢٠٢٦-٠٢-٠١",
]


@pytest.mark.parametrize("path", ["reports/a", "reports"])
@pytest.mark.parametrize("text", BAD)
def test_decision_18_what_cannot_be_read_is_refused_by_name(shop: Shop, path: str, text: str) -> None:
    """422, also a timestamp without an offset; both sides at once when both are wrong."""
    assert invalid(shop.get(path, **{"from": text})).keys() == {"from"}
    assert invalid(shop.get(path, **{"from": text, "to": text})).keys() == {"from", "to"}


@pytest.mark.parametrize("path", ["reports/a", "reports"])
def test_decision_18_from_after_to_is_refused(shop: Shop, path: str) -> None:
    """Dates or instants; an instant that is both is an empty range."""
    assert invalid(shop.get(path, **{"from": "2026-02-02", "to": "2026-02-01"})).keys() == {"from"}
    assert invalid(shop.get(path, **{"from": "2026-02-01T00:00:01Z", "to": "2026-02-01T00:00:00Z"})).keys() == {"from"}
    assert numbers(ask(shop, path, from_="2026-02-01T00:00:00Z", to="2026-02-01T00:00:00Z")) == []


def test_decision_18_a_parameter_twice_is_refused(shop: Shop) -> None:
    """Which of the two was meant is not guessed at; an unknown parameter is nothing to us."""
    url = "/v1/mcf/EL02000015-1/reports/a?from=2026-01-01&from=2026-02-01"
    assert invalid(shop.http.get(url, headers=shop.headers())).keys() == {"from"}
    assert ask(shop, page="2")["kind"] == "A"


# -- 19, 20 -------------------------------------------------------------------------------------------------------------


def test_decision_19_a_counts_by_time_and_lists_by_creation(shop: Shop) -> None:
    """A sale before the range closed by a Z inside it is not counted, and its Z is listed."""
    at = one(shop)
    z = shop.close_period().json()
    since = millis(at + timedelta(milliseconds=1))
    report = ask(shop, from_=since)
    assert (report["certs_count"], numbers(report)) == (0, [z["z_number"]])
    report = ask(shop, from_=millis(at), to=z["created_at"])
    assert (report["certs_count"], numbers(report)) == (1, [])


def test_decision_19_a_carries_the_same_totals_as_z(shop: Shop) -> None:
    """`from`, `to`, `total_ht`, `total_tva`, `by_type`: over exactly a period they are the Z's."""
    shop.close_period()
    at = one(shop)
    one(shop)
    z = shop.close_period().json()
    report = ask(shop, from_=millis(at), to=z["created_at"])
    for name in ("certs_count", "total_ttc", "total_ht", "total_tva", "by_group", "by_type", "by_payment"):
        assert report[name] == z[name], name


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


@pytest.mark.parametrize("name", ["limit", "after"])
@pytest.mark.parametrize("text", ["-1", "x", "", "1.5", "1e3", "99999999999999999999", "+1"])
def test_decision_20_limit_and_after_are_whole_numbers(shop: Shop, name: str, text: str) -> None:
    """422 by name."""
    assert invalid(shop.get("reports", **{name: text})).keys() == {name}


@pytest.mark.parametrize(("limit", "good"), [("0", False), ("1", True), ("1000", True), ("1001", False)])
def test_decision_20_a_page_has_at_most_a_thousand(shop: Shop, limit: str, good: bool) -> None:
    """The default and the maximum."""
    assert (shop.get("reports", limit=limit).status_code == 200) is good
