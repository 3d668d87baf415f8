"""The card of a new key as a PDF: what a till needs, in words and as QR codes, for the person who has made the key and no other."""

import io
import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pypdf
import pytest
from PIL import Image, ImageDraw
from support.browser import Visitor
from support.shop import NIM, Shop
from support.tools import need

pytestmark = pytest.mark.long

CARD = "/ui/box/key/card"


def new_key(technician: httpx.Client) -> str:
    answer = technician.post("/ui/box/key", data={"label": "caisse 7", "role": "seller"})
    found = re.search(r'name="key" value="(ak_live_\w+)"', answer.text)
    assert found, answer.text
    assert "/ui/language/" not in answer.text  # in another language the screen, and the key with it, would be gone
    return found[1]


def test_a_form_that_comes_twice_makes_one_key(shop: Shop) -> None:
    """A double click, or a screen that is loaded again: the key is shown once more."""
    with Visitor(shop, "technician") as technician:
        found = re.search(r'name="form" value="([\w-]+)"', technician.get("/ui/box/keys").text)
        form = {"label": "caisse 9", "role": "seller", "form": found[1]}
        with ThreadPoolExecutor(3) as pool:
            answers = list(pool.map(lambda _: technician.post("/ui/box/key", data=form).text, range(3)))
        keys = {key for text in answers for key in re.findall(r'name="key" value="(ak_live_\w+)"', text)}
        assert (len(keys), technician.get("/ui/box/keys").text.count("<td>caisse 9<")) == (1, 1)
        assert "ak_live_" in technician.post("/ui/box/key", data={**form, "label": "caisse 10"}).text.replace(
            next(iter(keys)), ""
        )


def drawn(page: pypdf.PageObject) -> Image.Image:
    """The page's filled rectangles, of which its codes are made."""
    scale, contents = 3, page.get_contents()
    assert contents is not None
    picture = Image.new("L", (int(page.mediabox.width) * scale, int(page.mediabox.height) * scale), 255)
    pen = ImageDraw.Draw(picture)
    number = rb"(-?[0-9.]+) "
    for found in re.findall(number * 4 + rb"re f", contents.get_data()):
        x, y, wide, high = (float(part) * scale for part in found)
        top, bottom = sorted((picture.height - y, picture.height - y - high))
        pen.rectangle((x, top, x + wide, bottom), fill=0)
    return picture


def test_the_card_says_in_codes_what_it_says_in_words(shop: Shop, tmp_path: Path) -> None:
    """One page with embedded fonts; a scanner reads the till's code as address, machine and key, which opens the API, and the page's address."""
    need("zbarimg")
    with Visitor(shop, "technician") as technician:
        key = new_key(technician)
        answer = technician.post(CARD, data={"key": key})
    assert answer.headers["content-type"] == "application/pdf"
    assert answer.headers["cache-control"] == "no-store"
    (page,) = pypdf.PdfReader(io.BytesIO(answer.content)).pages
    text = page.extract_text()
    assert "caisse 7" in text
    assert key in text.replace("\n", "")
    assert b"/FontFile2" in answer.content
    drawn(page).save(tmp_path / "card.png")
    command = ["zbarimg", "--quiet", "--raw", str(tmp_path / "card.png")]
    read = subprocess.run(command, capture_output=True, text=True, check=True)
    codes = set(read.stdout.split("\n"))
    address = f"http://127.0.0.1:{shop.port}"
    assert f"{address}/ui/" in codes
    (content,) = (json.loads(code) for code in codes if code.startswith("{"))
    assert content == {"url": address, "nim": NIM, "key": key}
    assert (
        httpx.get(f"{content['url']}/v1/me", headers={"Authorization": f"Bearer {content['key']}"}).status_code == 200
    )


def test_a_card_is_of_a_key_of_this_machine(shop: Shop) -> None:
    """What is no key of it gives no card; neither does a role that may not make keys."""
    with Visitor(shop, "technician") as technician:
        key = new_key(technician)
        for wrong in ("", "ak_live_nothing", key[:-1], shop.key("test")[:-1]):
            assert technician.post(CARD, data={"key": wrong}).status_code == 404
    with Visitor(shop, "seller") as seller:
        assert seller.post(CARD, data={"key": key}).status_code == 403
