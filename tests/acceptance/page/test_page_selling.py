"""An invoice by hand and a credit note from the page, asked for as a browser without a script does: certified once, whatever is sent how often."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.browser import PASSWORD, Visitor, staffed_shop
from support.shop import NIM, Machine, Shop, invoice, wait_for


@pytest.fixture
def awa(shop: Shop) -> Iterator[httpx.Client]:
    with Visitor(shop, "seller", "en", follow_redirects=True) as client:
        yield client


def key_of(text: str) -> str:
    found = re.search(r'name="key" value="([^"]+)"', text)
    return found[1]


def form_of(awa: httpx.Client, **typed: str) -> dict[str, str]:
    """What the form of a new sale sends, paid in cash by somebody who is not known."""
    key = key_of(awa.get("/ui/sale").text)
    return {"key": key, "name1": "Natte", "price1": "1250", "group1": "A", "client": "CC", "method": "E", **typed}


def certified(shop: Shop) -> list[dict[str, Any]]:
    return shop.machines[0].certified()


def test_a_sale_by_hand_is_certified_once(awa: httpx.Client, shop: Shop) -> None:
    """With articles that were sold before, whose price and group need not be said; sent twice it is one invoice, as it is where a line was changed in between."""
    assert shop.certify(invoice("KNOWN", 1500)).status_code == 200
    page = awa.get("/ui/sale").text
    article = invoice("KNOWN", 1500)["items"][0]["name"]
    assert f'value="{article}"' in page
    before = len(certified(shop))
    second = {"name2": "Natte", "price2": "1 250", "group2": "A"}
    form = form_of(awa, name1=article, quantity1="2", price1="", group1="", method="M") | second
    answer = awa.post("/ui/sale", data=form)
    assert "4 250" in answer.text.replace("\u00a0", " "), answer.text
    again = awa.post("/ui/sale", data=form)
    assert again.url.path == answer.url.path
    changed = awa.post("/ui/sale", data={**form, "quantity1": "3"})
    assert changed.url.path == answer.url.path
    assert "Certified." in answer.text
    assert "The form had made this invoice already" in changed.text
    assert len(certified(shop)) == before + 1


def test_the_first_paper_of_a_sale_by_hand_is_no_duplicate(awa: httpx.Client, shop: Shop) -> None:
    """Who made it prints it for the customer; to any other person, and once a copy was given out, it is one."""
    sold = awa.post("/ui/sale", data=form_of(awa))
    first = unescape(re.findall(r'href="(/ui/paper/invoice/[^"]+first=1)"', sold.text)[0])
    assert "DUPLICATA" not in awa.get(first).text
    with Visitor(shop, "manager") as other:
        assert "first=1" not in other.get(sold.url.path).text
        assert "DUPLICATA N° 1" in other.get(first).text
    assert "first=1" not in awa.get(sold.url.path).text
    assert "DUPLICATA" in awa.get(first).text
    with ThreadPoolExecutor(6) as browser:
        at_once = [answer.text for answer in browser.map(awa.get, [first] * 12)]
    numbers = sorted(int(number) for text in at_once for number in re.findall(r"DUPLICATA\D+(\d+)", text))
    assert numbers == list(range(3, 15))


def test_invoices_by_hand_are_numbered_without_gaps(awa: httpx.Client, shop: Shop) -> None:
    """Where the shop has no series the page has one for each type and year (SFE 2.18, 3 m): a refused form takes no number, a repeated one none more."""
    year = datetime.now(UTC).year
    form = form_of(awa)
    first = certified(shop)

    def of_type(type_: str) -> list[str]:
        return [each["number"] for each in certified(shop) if each["number"].startswith(f"MAIN-{type_}-{year}-")]

    at = len(of_type("FV"))
    for key in ("series 1", "series 1", "series 2"):
        assert awa.post("/ui/sale", data={**form, "key": key}).status_code == 200
        assert awa.post("/ui/sale", data={**form, "key": f"{key} refused", "price1": "0"}).status_code == 422
    sold = awa.post("/ui/sale", data={**form, "key": "series 3"})
    awa.post(f"{sold.url.path}/credit", data={"key": "series 4", "line0": "1", "nature": "RAN"})
    assert of_type("FV")[at:] == [f"MAIN-FV-{year}-{at + more:06}" for more in (1, 2, 3)]
    assert of_type("FA")[-1].endswith(f"{len(of_type('FA')):06}")
    assert len(certified(shop)) == len(first) + 4


def test_the_stamp_duty_of_a_sale_by_hand_is_told(tmp_path: Path) -> None:
    """It is taken in cash on top of the total, and expected in the drawer: the cashier reads it before the invoice and with it, and X has it."""
    with (
        staffed_shop(tmp_path, "manager", config={"stamp_duty": {"enabled": True}}) as shop,
        Visitor(shop, "manager", follow_redirects=True) as client,
    ):
        assert "timbre" in client.get("/ui/sale").text
        sold = client.post("/ui/sale", data=form_of(client, price1="15000")).text.replace("\u00a0", " ")
        assert re.search(r'data-testid="with-stamp">Avec le timbre de 100 F CFA : 15 100 F CFA', sold), sold
        shop.x_with(1)
        assert "Timbre quittance" in client.get("/ui/x").text


@pytest.mark.parametrize(
    ("price", "total"),
    [("15,000", "15 000"), ("15,5", "16"), ("1.250.000", "1 250 000"), ("1 250,00 F CFA", "1 250"), ("1250f", "1 250")],
)
def test_thousands_are_written_in_many_ways(awa: httpx.Client, price: str, total: str) -> None:
    """A point or a comma before three digits parts thousands: no price has three decimals, and fifteen thousand francs are not fifteen. An amount
    that was copied from the page has its currency with it."""
    answer = awa.post("/ui/sale", data=form_of(awa, price1=price, quantity1="1"))
    assert f"<strong>{total} F CFA</strong>" in answer.text.replace("\u00a0", " "), answer.text


def test_an_ifu_is_pasted_with_blanks(awa: httpx.Client) -> None:
    """As papers and messages write it; it is found so as well."""
    sold = awa.post("/ui/sale", data=form_of(awa, client="PM", customer="SARL", ifu="0007 6543\u00a0x"))
    assert "00076543X" in sold.text, sold.text
    assert "1 invoice shown" in awa.get("/ui/journal", params={"q": "0007 6543 X"}).text


@pytest.mark.parametrize(
    ("typed", "word"),
    [
        ({}, "article"),
        ({"name1": "Panier", "group1": "B", "price1": "100", "quantity1": "deux"}, "Quantity"),
        ({"name1": "Panier", "group1": "B", "price1": "100", "client": "PM"}, "ifu"),
        (
            {"name1": "Panier", "group1": "B", "price1": "1", "client": "PM", "customer": "SARL", "ifu": "123"},
            "eight digits and a capital letter, as 00012345X",
        ),
        ({"name1": "é" * 150, "group1": "B", "price1": "100", "client": "CC"}, "line 1: Article: cut to the"),
        ({"name1": "Panier", "group1": "B", "price1": "100"}, "Customer: the kind has to be chosen"),
        ({"name1": "Panier", "group1": "B", "price1": "0,001", "client": "CC"}, "line 1: Price: has more than"),
        (
            {"name1": "Panier", "group1": "B", "price1": "1e5", "client": "CC"},
            "line 1: Price: a number above 0, as 1500 or 2.5",
        ),
        (
            {"name1": "Panier", "group1": "B", "price1": "1,500.00", "client": "CC"},
            "Price: a number above 0, as 1500 or 2.5",
        ),
        (
            {"name1": "Panier", "group1": "B", "price1": "1", "price2": "700", "client": "CC"},
            "line 2: an article is needed",
        ),
    ],
)
def test_a_sale_that_is_not_complete_is_not_certified(
    awa: httpx.Client, shop: Shop, typed: dict[str, str], word: str
) -> None:
    """The form comes back with what was typed, and says which field is meant."""
    before = len(certified(shop))
    answer = awa.post("/ui/sale", data={"key": f"of {word} {len(typed)}", "quantity1": "1", **typed})
    assert answer.status_code == 422
    assert word in answer.text.partition('problem" role="alert"')[2][:400]
    assert all(f'value="{value}"' in answer.text for name, value in typed.items() if name not in ("client", "group1"))
    assert len(certified(shop)) == before


def test_an_article_sold_without_vat_is_known_with_it(awa: httpx.Client, shop: Shop) -> None:
    """Its price in the form is what the customer paid for one, not what stood on the line before VAT."""
    item = {"name": "Natte sans taxe", "taxGroup": "B", "unitPrice": 1000, "quantity": 2}
    sold = invoice("HT-KNOWN", priceMode="HT", items=[item], payments=[{"method": "E", "amount": 2360}])
    assert shop.certify(sold).status_code == 200
    answer = awa.post("/ui/sale", data=form_of(awa, name1="Natte sans taxe", price1="", group1="", quantity1="1"))
    assert certified(shop)[-1]["total"] == 1180, answer.text


def test_a_credit_note_is_made_of_chosen_lines(awa: httpx.Client, shop: Shop) -> None:
    """A part of one line, then the rest, which the form offers by itself; sent twice it is one; more than was sold is refused with what is left,
    and so is a nature that was not chosen. What is credited whole is offered no further credit note."""
    items = [
        {"name": "Riz", "taxGroup": "B", "unitPrice": 1000, "quantity": 3},
        {"name": "Savon", "taxGroup": "A", "unitPrice": 450, "quantity": 1},
    ]
    sold = shop.certify(invoice("TO-CREDIT", items=items, payments=[{"method": "E", "amount": 3450}])).json()
    seq = re.search(r'/ui/journal/(\d+)[^"]*">TO-CREDIT', awa.get("/ui/journal?q=TO-CREDIT").text)
    place = f"/ui/journal/{seq[1]}/credit"
    key = key_of(awa.get(place).text)
    before = len(certified(shop))
    assert awa.post(place, data={"key": key, "line0": "1", "quantity0": "1"}).status_code == 422
    assert awa.post(place, data={"key": key, "line0": "1", "quantity0": "4", "nature": "RAM"}).status_code == 422
    assert awa.post(place, data={"key": key, "nature": "RAM"}).status_code == 422
    assert len(certified(shop)) == before
    one = {"key": key, "line0": "1", "quantity0": "1", "nature": "RAM"}
    answer = awa.post(place, data=one)
    assert "1 000" in answer.text.replace("\u00a0", " "), answer.text
    assert awa.post(place, data=one).url.path == answer.url.path
    assert len(certified(shop)) == before + 1
    assert f"{sold['nim']}-{sold['fvc']}" in answer.text
    offered = [re.search(rf'name="quantity{at}"[^>]*value="([^"]*)"', awa.get(place).text)[1] for at in range(2)]
    assert offered == ["2", "1"]
    whole = {"key": "another", "line0": "1", "line1": "1", "nature": "RAN"}
    refused = awa.post(place, data=whole)
    assert (refused.status_code, "2 450 F CFA" in refused.text.replace("\u00a0", " ")) == (409, True), refused.text
    assert "to-credit" in awa.get(f"/ui/journal/{seq[1]}").text
    rest = awa.post(place, data={**whole, "key": "a-third", "quantity0": "2"})
    assert "2 450" in rest.text.replace("\u00a0", " ")
    assert "to-credit" not in awa.get(f"/ui/journal/{seq[1]}").text
    assert len(certified(shop)) == before + 2


def test_a_credit_note_is_not_made_again_while_it_is_under_way(awa: httpx.Client, shop: Shop) -> None:
    """The tax server takes its time, and the person loads the form again and sends it: refused, as after the end of the first one, until the lines
    were looked at again. The first form, repeated, is the first credit note."""
    shop.machines[0].order("options", credit_check=1.0)
    assert shop.certify(invoice("TWO", 1000, 1000)).status_code == 200
    seq = re.search(r'/ui/journal/(\d+)[^"]*">TWO', awa.get("/ui/journal?q=TWO").text)
    place = f"/ui/journal/{seq[1]}/credit"

    def sent() -> httpx.Response:
        return awa.post(place, data=form)

    def loaded() -> dict[str, str]:
        page = awa.get(place).text
        return {name: re.search(rf'name="{name}" value="([^"]+)"', page)[1] for name in ("key", "taken")} | ticked

    ticked = {"line0": "1", "nature": "RAM"}
    before, form = len(certified(shop)), loaded()
    with ThreadPoolExecutor(1) as thread:
        first, own = thread.submit(sent), form
        wait_for(lambda: shop.get("certifications", state="begun").json()["count"], "the credit note under way")
        form = loaded()
        assert sent().status_code == 422
        done = first.result()
    assert (done.status_code, len(certified(shop))) == (200, before + 1), done.text
    refused = sent()
    assert (refused.status_code, "another credit note" in refused.text) == (422, True), refused.text
    assert [f'name="line{at}" value="1" checked' in refused.text for at in range(2)] == [False, True]  # what is left
    form = own
    assert sent().url.path == done.url.path
    form = {**loaded(), "line1": "1"}
    del form["line0"]
    assert sent().status_code == 200
    assert len(certified(shop)) == before + 2
    shop.machines[0].order("options", credit_check=0.0)


def test_a_sale_of_a_replaced_machine_is_credited_by_another_of_its_taxpayer(tmp_path: Path) -> None:
    """The page offered the credit note, and said that the machine does not answer. Without such a machine it is not offered."""
    old, new = Machine(tmp_path), Machine(tmp_path, "EL02000016-1")
    other = Machine(tmp_path, "EL02000017-1", "00099999Z")
    with staffed_shop(tmp_path, "seller", machines=(old,)) as shop:
        assert shop.certify(invoice("OF-THE-OLD", 1000, 500)).status_code == 200
        for machines, offers in (((other,), False), ((other, new), True)):
            shop.stop_daemon()
            for machine in shop.machines:
                machine.stop()
            shop.machines = machines
            shop.start()
            with Visitor(shop, "seller", "en", follow_redirects=True) as awa:
                assert ("to-credit" in awa.get(f"/ui/journal/1?m={NIM}").text) is offers
                form = {"key": "a", "line0": "1", "nature": "RAM"}
                done = [awa.post(f"/ui/journal/1/credit?m={NIM}", data=form) for _ in range(2)]
                assert [answer.status_code for answer in done] == ([200] * 2 if offers else [422] * 2), done[0].text
        assert [(entry["total"], entry["opening"]["reference"]) for entry in new.certified()] == [(1000, f"{NIM}-1")]
        assert other.certified() == []


@pytest.mark.parametrize(
    ("path", "screen", "form", "visible"),
    [
        ("/ui/box/person", "/ui/box/people", {"name": "salif", "role": "reader", "password": "court"}, ("salif",)),
        ("/ui/box/person", "/ui/box/people", {"name": "seller", "role": "reader", "password": PASSWORD}, ("seller",)),
        ("/ui/box/person", "/ui/box/people", {"name": "a" * 33, "role": "reader", "password": PASSWORD}, ("a" * 33,)),
        (
            "/ui/box/key",
            "/ui/box/keys",
            {"label": "till 4", "role": "reader", "until": "2020-01-31"},
            ("till 4", "2020-01-31"),
        ),
        ("/ui/box/person/seller/password", "/ui/box/people", {"password": "court"}, ()),
        (
            "/ui/box/join",
            "/ui/box",
            {"code": "none", "url": "https://siege.example"},
            ("none", "https://siege.example"),
        ),
        ("/ui/account/password", "/ui/account", {"current": "x", "password": "court", "again": "court"}, ()),
    ],
)
def test_a_form_that_is_refused_comes_once_more(
    shop: Shop, path: str, screen: str, form: dict[str, str], visible: tuple[str, ...]
) -> None:
    """On its screen, with what was typed but for passwords, and why; in no other language, which would lose it."""
    with Visitor(shop, "technician", "en") as client:
        title = re.search("<h1>[^<]*</h1>", client.get(screen).text)
        answer = client.post(path, data=form)
    assert answer.status_code in (409, 422), answer.text
    assert title[0] in answer.text
    assert 'problem" role="alert"' in answer.text
    assert f'action="{path}' in answer.text
    assert all(f'value="{value}"' in answer.text for value in visible)
    assert not any(f'value="{form[name]}"' in answer.text for name in ("password", "current") if name in form)
    assert "/ui/language/" not in answer.text
