"""Decisions 13 to 15 and 21: when a certification enters the totals, what a Z takes in, and whose clock counts."""

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from support.processor import measured, within
from support.shop import Shop, invoice, wait_for
from support.till import certified, fresh, problem, rows


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """With the delay that is the default."""
    config = {"reports": {"aggregation_delay": 2.0}}
    with Shop(tmp_path_factory.mktemp("shop"), config=config, per_machine={"reply_timeout": 0.3}) as shop:
        yield shop.start()


def test_decision_13_a_certification_enters_within_three_seconds(shop: Shop) -> None:
    """The answer does not wait for the tick; X and A show the old state together, then the new one together. One of six has to show it: a tick may
    fall between the answer and the first look, and beside a disk that others write to, a commit may take a second by itself."""
    assert any(old == [0, 0] and seconds < 3 for old, seconds in (enters_in(shop) for _ in range(6)))


def enters_in(shop: Shop) -> tuple[list[int], float]:
    """What X and A show right after the answer, and the seconds from there until the certification is in both, in a period of its own."""
    since = shop.closed()["created_at"]
    with within(1, *shop.pids):
        certified(shop.certify(invoice(fresh())))

    def seen() -> list[int]:
        reports = (shop.get("reports/x"), shop.get("reports/a", **{"from": since}))
        return [report.json()["certs_count"] for report in reports]

    with measured(*shop.pids) as spent:
        old = seen()
        wait_for(lambda: seen() == [1, 1])
    return old, spent.seconds


def test_decision_14_each_certification_is_in_exactly_one_z(shop: Shop) -> None:
    """Three tills sell while the periods are closed: the Z partition the sales by their order on the machine, and at no Z does
    the machine know more than the Z has (nothing is certified while one is taken)."""
    first = shop.closed()
    bodies = [invoice(fresh(), price) for price in range(100, 145)]
    with ThreadPoolExecutor(4) as tills:
        sales = tills.map(shop.certify, bodies)
        closures = list(tills.map(lambda _: shop.closed(), range(6)))
        receipts = {receipt["fvc"]: receipt for receipt in map(certified, sales)}
    closures.append(shop.closed())
    closures.sort(key=lambda z: z["z_number"])
    assert sum(z["certs_count"] for z in closures) == len(bodies)
    for before, z in itertools.pairwise([first, *closures]):
        assert z["z_number"] == before["z_number"] + 1
        assert z["period_start"] == before["period_end"]
        assert z["mcf_counters"]["fvc"] == before["mcf_counters"]["fvc"] + z["certs_count"] == z["fvc_end"]
        if z["certs_count"]:
            found_rows = [receipts[fvc] for fvc in range(z["fvc_start"], z["fvc_end"] + 1)]
            assert (len(found_rows), sum(r["totalTtc"] for r in found_rows)) == (z["certs_count"], z["total_ttc"])
    shop.verify()


def test_decision_15_a_z_needs_the_machine(shop: Shop) -> None:
    """Away, or silent in the middle of it: 503 with `Retry-After`, nothing closed, no number used, the period goes on."""
    machine, last = shop.machines[0], shop.closed()
    certified(shop.certify(invoice(fresh())))
    before = rows(shop)
    machine.order("silence")
    silent = shop.close_period()
    assert "nothing was closed" in problem(silent, 503, "BRIDGE_OFFLINE")["detail"]
    assert int(silent.headers["retry-after"]) > 0
    machine.order("unplug")
    machine.order("speak")
    away = shop.close_period()
    problem(away, 503, "BRIDGE_OFFLINE")
    assert rows(shop) == before
    machine.order("plug")
    wait_for(lambda: shop.http.get("/health/ready").status_code == 200)
    z = shop.closed()
    assert (z["z_number"], z["certs_count"]) == (last["z_number"] + 1, 1)
    assert z["period_start"] == last["period_end"]


def move(shop: Shop, days: int) -> str:
    """The month that it is then."""
    return str(shop.certify({"days": days}, mode="test", path="test/clock").json()["now"])[:7]


def close(shop: Shop, kind: str, key: str = "", **body: object) -> httpx.Response:
    return shop.certify(body, key=key, mode="test", path=f"reports/{kind}")


def test_months_are_closed_by_themselves_or_at_once_and_never_early(own_shop: Shop) -> None:
    """Arrêté 0047, art. 23, and decision 42, on the sandbox, whose time can be moved. By the first certification after it, by POST, and by the Z; on paper, in French; the same key gets the same answer; verify agrees."""
    shop = own_shop
    first = move(shop, 0)
    shop.certify(invoice("M-1"), mode="test")
    shop.close_period(mode="test")
    problem(close(shop, "month"), 409, "PERIOD_NOT_OVER")
    assert problem(close(shop, "month", period="2026-1"), 422, "INVALID_REQUEST")["errors"][0]["field"] == "period"
    problem(close(shop, "month", period=first), 409, "PERIOD_NOT_OVER")
    problem(close(shop, "year"), 409, "PERIOD_NOT_OVER")
    second = move(shop, 31)
    shop.certify(invoice("M-2"), mode="test")
    found = wait_for(lambda: shop.get("reports/month", mode="test").json()["reports"], "the month")
    assert [(month["period"], month["number"], month["total_ttc"]) for month in found] == [(first, 1, 15000)]
    shop.close_period(mode="test")
    move(shop, 31)
    done = close(shop, "month", key="m-2")
    assert done.status_code == 201, done.text
    month = done.json()
    assert (month["period"], month["number"], month["total_ttc"]) == (second, 2, 15000)
    assert month["grand_total"]["total_ttc"] == 30000
    again = close(shop, "month", key="m-2")
    assert (again.content, again.headers["idempotency-replayed"]) == (done.content, "true")
    assert close(shop, "month", period=second).json() == month
    assert shop.get("reports/month/2", mode="test").json() == shop.get(f"reports/month/{second}", mode="test").json()
    problem(shop.get("reports/month/99", mode="test"), 404, "NOT_FOUND")
    problem(shop.get("reports/month/x", mode="test"), 404, "NOT_FOUND")
    ticket = shop.get("reports/month/2/ticket", mode="test").text
    assert "CLÔTURE MENSUELLE N° 2" in ticket
    assert "Total général" in ticket
    year = move(shop, 360)
    shop.close_period(mode="test")
    (closed,) = shop.get("reports/year", mode="test").json()["reports"][-1:]
    months = [
        one for one in shop.get("reports/month", mode="test").json()["reports"] if one["period"][:4] == closed["period"]
    ]
    assert closed["period"] < year
    assert sum(one["total_ttc"] for one in months) == closed["total_ttc"]
    assert "CLÔTURE ANNUELLE N° 1" in shop.get("reports/year/1/ticket", mode="test").text
    shop.stop_daemon()
    shop.verify()
