"""An invoice shared by a link: its holder sees that invoice without a login, and nothing else; a link cannot be forged."""

import io
import re
from collections.abc import Callable, Iterator
from html import unescape

import pypdf
import pytest
from support.browser import FRENCH_PHONE, Person, Visitor, fits, staffed_shop
from support.shop import Shop, invoice

pytestmark = pytest.mark.long

SHARED = re.compile(r'href="(?:https?://[^/]+)?(/ui/shared/[^"]+)" data-testid="shared"')


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with staffed_shop(
        tmp_path_factory.mktemp("sharing"), "seller", config={"server": {"allowed_hosts": ["box.lan"]}}
    ) as shop:
        assert shop.certify(invoice("SHARED-1", 1500)).status_code == 200
        assert shop.certify(invoice("SHARED-2", 2500)).status_code == 200
        yield shop


def shared(shop: Shop, number: str, at: str = "") -> str:
    """The screen with a new link, by a form that is sent twice; `at` is the host at which the person looks."""
    with Visitor(shop, "seller") as seller:
        path = re.search(rf'(/ui/journal/\d+)[^"]*">{number}', seller.get(f"/ui/journal?q={number}").text)
        form = re.search(r'/share[?"].*?name="form" value="([^"]+)"', seller.get(path[1]).text)
        headers = {"Host": at, "Origin": f"http://{at}"} if at else {}
        answers = [seller.post(f"{path[1]}/share", data={"form": form[1]}, headers=headers).text for _ in range(2)]
        assert len({found for answer in answers for found in SHARED.findall(answer)}) == 1, answers
        return answers[0]


def share(shop: Shop, number: str) -> str:
    """The path of a new link."""
    return str(SHARED.findall(shared(shop, number))[0])


def test_whoever_has_the_link_has_the_invoice(own: Shop) -> None:
    """A PDF, marked as the duplicate that was given out; the link may be opened again, and that is no further copy. It is kept by no cache, and shows the
    way to nothing else: no cookie, and no other screen without a login."""
    link = share(own, "SHARED-1")
    with Visitor(own) as customer:
        for _ in range(2):
            answer = customer.get(link)
            assert answer.status_code == 200
            assert answer.headers["content-type"] == "application/pdf"
            assert answer.headers["cache-control"] == "no-store"
            assert "set-cookie" not in answer.headers
            text = pypdf.PdfReader(io.BytesIO(answer.content)).pages[0].extract_text()
            assert "SHARED-1" in text
            assert re.search(r"DUPLICATA\s+N°\s+1", text)
        assert customer.get("/ui/journal").headers["location"].startswith("/ui/login")
    again = share(own, "SHARED-1")
    with Visitor(own) as customer:
        text = pypdf.PdfReader(io.BytesIO(customer.get(again).content)).pages[0].extract_text()
        assert re.search(r"DUPLICATA\s+N°\s+2", text)


@pytest.mark.parametrize(("host", "is_warned"), [("127.0.0.1", True), ("box.lan", False)])
def test_a_link_that_a_phone_cannot_open_says_so(own: Shop, host: str, is_warned: bool) -> None:
    """Made in a browser on the box itself: no customer's phone is there."""
    at = f"{host}:{own.port}"
    screen = shared(own, "SHARED-2", at)
    assert f"http://{at}/ui/shared/" in screen
    assert ("le téléphone d'un client ne peut pas l'ouvrir" in unescape(screen)) is is_warned


def test_nobody_makes_a_link_up(own: Shop) -> None:
    """Each part of it is signed: another invoice, another copy, a later end, a cut or altered signature, or none at all is 404, and says nothing of
    what there is."""
    head, _, token = share(own, "SHARED-1").rpartition("/")
    other = share(own, "SHARED-2").rpartition("/")[2].split("~")
    book, code, copy, ends, signature = token.split("~")
    assert len(signature) * 4 >= 96
    forged = [
        (book, other[1], copy, ends, signature),
        (book, code, "9", ends, signature),
        (book, code, copy, str(int(ends) + 86_400_000), signature),
        (other[0] + "x", code, copy, ends, signature),
        (book, code, copy, ends, signature[:-1]),
        (book, code, copy, ends, "0" * len(signature)),
        (book, code, copy, ends, ""),
        (code,),
        ("é", "~"),
    ]
    with Visitor(own) as customer:
        answers = [customer.get(f"{head}/{'~'.join(parts)}") for parts in forged]
    assert {answer.status_code for answer in answers} == {404}
    assert len({re.sub(r"[0-9a-f-]{6,}", "", answer.text) for answer in answers}) == 1


def test_a_link_ends_with_the_daemon_that_made_it(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Its key is in no file: a reader of the disk cannot sign one. The customer reads what to do, and is not led to the shop's own screens."""
    with staffed_shop(tmp_path_factory.mktemp("restarted"), "seller") as shop:
        assert shop.certify(invoice("SHARED-3", 1500)).status_code == 200
        link = share(shop, "SHARED-3")
        shop.stop_daemon()
        shop.start_daemon()
        with Visitor(shop) as customer:
            answer = customer.get(link, headers={"Accept-Language": "fr"})
        assert answer.status_code == 404
        assert "demandez-en un autre à la boutique" in answer.text
        assert "Retour à aujourd" not in answer.text


def test_a_receipt_is_read_on_a_phone(person: Callable[..., Person], shop: Shop) -> None:
    """What a customer fetches with the code on the slip had letters of 11 pixels, in the middle of a wide margin; on paper nothing changes."""
    code = shop.certify(invoice("PHONE-1", 12_500)).json()["codeSecef"]
    page = person("seller", FRENCH_PHONE).go(f"/ui/paper/invoice/{code}")
    size = "body => parseFloat(getComputedStyle(body).fontSize)"
    assert page.locator("body").evaluate(size) >= 13
    fits(page)
    page.emulate_media(media="print")
    assert page.locator("body").evaluate(size) < 12
