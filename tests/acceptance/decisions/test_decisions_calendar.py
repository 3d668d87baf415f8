"""Months and years over HTTP (arrêté 0047, art. 23; decision 42), on the sandbox, whose time can be moved."""

import httpx
from support.shop import Shop, invoice, wait_for
from support.till import problem


def move(shop: Shop, days: int) -> str:
    """The month that it is then."""
    return str(shop.certify({"days": days}, mode="test", path="test/clock").json()["now"])[:7]


def close(shop: Shop, kind: str, key: str = "", **body: object) -> httpx.Response:
    return shop.certify(body, key=key, mode="test", path=f"reports/{kind}")


def test_months_are_closed_by_themselves_or_at_once_and_never_early(own_shop: Shop) -> None:
    """By the first certification after it, by POST, and by the Z; on paper, in French; the same key gets the same answer; verify agrees."""
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
