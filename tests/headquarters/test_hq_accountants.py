"""The file for accountants says what the page and `/v1` say, whatever shops have called their payments."""

import asyncio
import calendar
import csv
import io
import itertools
import re
from collections import Counter
from datetime import UTC, datetime
from html import unescape

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from support.hq.in_process import pages
from support.hq.paper_box import DAY, EVENING, PaperBox
from support.hq.store import received

from common.wire.closure import GroupTotal, PaymentTotal
from common.wire.keys import PrivateKey

MOST = 2**53 - 1
LABELS = ("Espèces", "Carte", "=1+1", "'=1+1", "Total TTC", "HT B", "Z", "", "a;b", "a\r\nb", "\u202f", "Carte (2)")
months = itertools.count(12 * 30)


amounts = st.integers(-MOST, MOST) | st.integers(-20_000, 20_000)
payments = st.lists(
    st.builds(PaymentTotal, method=st.sampled_from("EVCMBA"), label=st.sampled_from(LABELS), amount=amounts),
    max_size=5,
)
groups = st.lists(
    st.builds(GroupTotal, group=st.sampled_from(("A", "B", "=C")), ht=amounts, tva=amounts, ttc=amounts), max_size=4
)
closures = st.fixed_dictionaries(
    {
        "by_payment": payments.map(tuple),
        "by_group": groups.map(tuple),
        "certs_count": st.integers(0, MOST),
        "total_ttc": amounts,
        "total_ht": amounts,
        "total_tva": amounts,
        "mode": st.sampled_from(("live", "live", "live", "test")),
        "hours": st.integers(0, 31 * 24),
        "is_stolen": st.booleans(),
    }
)
ledgers = st.lists(st.lists(closures, max_size=6), min_size=1, max_size=3)


def number(text):
    return int(re.sub(r"[^0-9-]", "", text.replace("\N{MINUS SIGN}", "-")))


def tables(html):
    """Each table's rows, as texts."""
    for table in re.findall(r"<tbody>(.*?)</tbody>", html, re.DOTALL):
        rows = re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)
        yield [
            [unescape(re.sub("<.*?>", "", cell)) for cell in re.findall(r"<t[hd].*?>(.*?)</t[hd]>", row, re.DOTALL)]
            for row in rows
        ]


def put(store, ledger, begin):
    """Those closures, in the month that begins then; what came under a stolen key is withdrawn."""
    for place, shop in enumerate(ledger):
        box = PaperBox(f"EL{begin // DAY:06}{place:02}-1")
        stolen = PrivateKey(bytes(32))
        store.register.add(box.nim, box.key.public, now=1, label="=Ouaga" if place else "Bobo", region="Centre")
        store.register.add(box.nim, stolen.public, now=1)
        for drawn in shop:
            changes = {name: drawn[name] for name in drawn if name not in ("hours", "is_stolen")}
            closure = box.close(at=begin + drawn["hours"] * DAY // 24, **changes)
            if drawn["is_stolen"]:
                box.key, key = stolen, box.key
            store.closures.store([received(box, closure, store)], now=10)
            if drawn["is_stolen"]:
                box.key = key
        machine = box.nim[:10]
        store.register.revoke(machine, stolen.id, 20)
        store.register.withdraw(machine, stolen.id, 0, 20)


@pytest.mark.long
@settings(
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    max_examples=20,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(ledger=ledgers)
def test_the_file_equals_the_page(store, ledger):
    """Every sum of the month's file is the page's and that of `/v1`, whatever labels, groups, modes and amounts there are."""
    at = next(months)
    year, month = 1970 + at // 12, at % 12 + 1
    asyncio.run(
        _compare(store, ledger, f"{year:04}-{month:02}", int(datetime(year, month, 1, tzinfo=UTC).timestamp() * 1000))
    )


async def _compare(store, ledger, month, begin):
    put(store, ledger, begin)
    async with pages(store, role="accountant") as client:
        page = (await client.get("/ui/totals", params={"month": month})).text
        file = (await client.get("/ui/exports/closures.csv", params={"month": month})).content
        last = f"{month}-{calendar.monthrange(*map(int, month.split('-')))[1]}"
        content = (await client.get("/v1/closures", params={"from": f"{month}-01", "to": last})).json()["closures"]
    rows = list(csv.reader(io.StringIO(file.decode("utf-8-sig"), newline=""), delimiter=";"))
    heads, lines = rows[0], rows[1:]
    assert len(set(heads)) == len(heads)
    sums = Counter(
        {head: sum(int(line[n]) for line in lines) for n, head in enumerate(heads) if n > 11 or 7 <= n <= 10}
    )
    by_day, by_group, by_payment, by_shop = tables(page)
    whole = [sum(number(row[n]) for row in by_day) for n in range(1, 6)]
    assert [len(lines), *(sums[head] for head in ("Factures", "Total HT", "TVA", "Total TTC"))] == whole
    assert whole == [
        len(content),
        *(sum(one[name] for one in content) for name in ("certs_count", "total_ht", "total_tva", "total_ttc")),
    ]
    assert whole[4] == sum(number(row[1]) for row in by_shop)
    # The columns behind the twelve of every month: three for each group, then one for each payment, in the order of their names.
    columns = [sums[head] for head in heads[12:]]
    in_page = [number(cell) for row in sorted(by_group) for cell in row[1:]]
    assert columns == in_page + [number(row[1]) for row in sorted(by_payment)]
    for name, result in (("by_group", by_group), ("by_payment", by_payment)):
        label, amount = {"by_group": ("group", "ttc"), "by_payment": ("label", "amount")}[name]
        found = Counter()
        for one in content:
            for part in one[name]:
                found[part[label]] += part[amount]
        assert {row[0]: number(row[-1]) for row in result} == dict(found)


async def test_two_payments_of_one_label(store):
    """Cash and card that the shop calls alike are one column; a spreadsheet knows its encoding, and runs no name as a formula."""
    box = PaperBox()
    store.register.add(box.nim, box.key.public, now=1, label="=Bobo")
    paid = (("E", "Divers", 10_000), ("C", "Divers", 6_000), ("V", "Z", 1), ("M", "=1", 2), ("B", "'=1", 3))
    payments = tuple(PaymentTotal(method=method, label=label, amount=amount) for method, label, amount in paid)
    store.closures.store([received(box, box.close(by_payment=payments), store)], now=10)
    async with pages(store, role="accountant") as client:
        file = (await client.get("/ui/exports/closures.csv", params={"month": "2025-12"})).content
    assert file.startswith(b"\xef\xbb\xbf")
    [row] = csv.DictReader(io.StringIO(file.decode("utf-8-sig")), delimiter=";")
    assert (row["Jour"], row["Magasin"]) == ("06/12/2025", "'=Bobo")
    assert [row[name] for name in ("Divers", "Z", "Z (2)")] == ["16000", "1", "1"]
    assert (row["'=1"], row["''=1"]) == ("2", "3")


async def test_a_closure_that_a_restored_ledger_replaced(store):
    """The shop's page shows it, with the Z that has its sales again; the month's file, the totals and the shop's chart count those sales once."""
    box = PaperBox()
    store.register.add(box.nim, box.key.public, now=1, label="Bobo")
    first = [box.close(), box.close()]
    box.forget(1)
    closures = [*first, box.close(3, z_number=3)]
    store.closures.store([received(box, closure, store) for closure in closures], now=10)
    async with pages(store, role="accountant") as client:
        month = {"month": "2025-12"}
        file = (await client.get("/ui/exports/closures.csv", params=month)).content
        shop = (await client.get(f"/ui/shops/{box.nim}", params=month)).text
        page = (await client.get("/ui/totals", params=month)).text
        content = (await client.get("/v1/closures")).json()["closures"]
    rows = list(csv.DictReader(io.StringIO(file.decode("utf-8-sig")), delimiter=";"))
    assert [(row["Z"], row["Total TTC"]) for row in rows] == [("1", "16000"), ("3", "24000")]
    assert "de nouveau dans le Z 3" in unescape(shop)
    assert sum(number(row[1]) for row in list(tables(page))[3]) == 40_000
    assert 'data-testid="missing"' not in page
    assert [(one["z_number"], one["replaced_by"]) for one in content] == [(1, None), (2, 3), (3, None)]


@pytest.mark.long
def test_a_day_of_more_than_a_number_of_the_database_holds(store):
    """1 030 closures of the greatest amount, and of the smallest, in a day: their sums are exact."""
    box = PaperBox()
    store.register.add(box.nim, box.key.public, now=1)
    amounts = {"2025-12-06": MOST, "2025-12-07": -MOST}
    for number, amount in enumerate(amounts.values()):
        rows = [box.close(at=EVENING + number * DAY, total_ttc=amount, certs_count=MOST) for _ in range(1030)]
        store.closures.store([received(box, closure, store) for closure in rows], now=10)
    sums = store.figures.totals(min(amounts), max(amounts))
    assert sums == {day: (1, 1030 * amount) for day, amount in amounts.items()}
    cells = store.figures.cells(["EL02000015"], min(amounts), max(amounts))
    assert {cell.day: (cell.certs, cell.ttc) for cell in cells} == {
        day: (1030 * MOST, 1030 * amount) for day, amount in amounts.items()
    }
