"""Shops that a person would take for one another, and more of them than a screen lists."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from support.hq.paper_box import PaperBox
from support.hq.running import RunningHq
from support.hq.store import received
from support.shop import PLAIN

from headquarters.page.totals import MAX_SHOPS
from headquarters.store.store import HqStore

MONTH = "2025-12"
PASSWORD = "un mot de passe"  # noqa: S105  # of a test


def add_shops(store: HqStore, first: int, last: int) -> list[str]:
    """Their NIMs; all have one name, and one closure each."""
    boxes = [PaperBox(f"EL02{number:06}-1") for number in range(first, last)]
    for box in boxes:
        store.register.add(box.nim, box.key.public, now=1, label="Pô", region="Sud")
        store.closures.store([received(box, box.close(), store)], now=1)
    return [box.nim for box in boxes]


@pytest.fixture
def hq(tmp_path: Path) -> Iterator[RunningHq]:
    hq = RunningHq(tmp_path, f"sqlite:///{tmp_path}/hq.sqlite3")
    hq.start()
    hq.cli("users", "create", "Ali", "--role", "reader", "--password-stdin", stdin=PASSWORD + "\n")
    yield hq
    hq.kill()


def test_shops_of_one_name_are_told_apart(hq: RunningHq, request: pytest.FixtureRequest) -> None:
    """Calendar and totals have the NIM beside the name. Totals say of how many shops they list the largest."""
    store = HqStore(hq.url)
    store.open()
    request.addfinalizer(store.close)
    with httpx.Client(base_url=hq.base, verify=PLAIN, trust_env=False, timeout=30, follow_redirects=True) as client:
        client.headers["Sec-Fetch-Site"] = "same-origin"
        client.post("/ui/login", data={"name": "Ali", "password": PASSWORD})
        nims = add_shops(store, 1, 3)
        for screen in ("", "totals"):
            page = client.get(f"/ui/{screen}?month={MONTH}").text
            assert [nim for nim in nims if re.search(f">Pô</a> *<small>{nim}</small>", page)] == nims
        assert "more-shops" not in page
        add_shops(store, 3, MAX_SHOPS + 2)
        assert f"{MAX_SHOPS} magasins sur {MAX_SHOPS + 1}," in client.get(f"/ui/totals?month={MONTH}").text
