"""Tryton's point of sale, an ERP of other authors, with the module of `integrations/tryton`: each paid sale is certified once, straight and over a
line that loses requests and answers. `TRYTON_SALES` says how many it sells (30)."""

import asyncio
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.box.cache import keep
from support.box.package import CACHE
from support.http_answers import Answer, Request, answering, passed_on
from support.relay_site import RelaySite
from support.shop import NIM, Shop

TREE = Path(__file__).parents[3]
MODULE = TREE / "integrations/tryton"
SALES = int(os.environ.get("TRYTON_SALES", "30"))
SECONDS = 400 + SALES * 8

pytestmark = [pytest.mark.long, pytest.mark.timeout(SECONDS + 300)]


@pytest.fixture(scope="module")
def tryton(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with Tryton and the module. What the locked requirements install is kept."""
    folder = tmp_path_factory.mktemp("tryton")
    with keep(f"tryton-{_hash(MODULE / 'requirements.txt')}", CACHE) as (installed, half):
        if half is not None:
            pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "--quiet", "install"]
            done = subprocess.run(
                [*pip, "--target", str(half), "--require-hashes", "-r", str(MODULE / "requirements.txt")],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    (packages,) = (folder / "venv/lib").glob("python3*/site-packages")
    packages.rmdir()
    for place in ("", "trytond", "trytond/modules"):
        (packages / place).unlink(missing_ok=True)
        (packages / place).mkdir()
        for each in (installed / place).iterdir():
            (packages / place / each.name).symlink_to(each)
    shutil.copytree(MODULE, packages / "trytond/modules/mcf")
    shutil.copytree(TREE / "clients/python/avepay_mcf", packages / "avepay_mcf")
    return folder / "venv/bin/python"


def _hash(*files: Path) -> str:
    return hashlib.sha256(b"".join([sys.version.encode(), *(file.read_bytes() for file in files)])).hexdigest()[:16]


def sold(python: Path, url: str, key: str, **more: Any) -> dict[str, Any]:
    settings = json.dumps({"url": url, "nim": NIM, "key": key, "count": SALES, **more})
    environ = {
        **os.environ,
        "DB_NAME": ":memory:",
        "DB_CACHE": str(python.parents[2] / "set-up"),  # made by the first test, for both
        "TRYTOND_CONFIG": str(python.parents[2] / "trytond.conf"),
    }
    (python.parents[2] / "trytond.conf").write_text("[database]\nuri = sqlite://\n[mcf]\npatience = 3\n")
    script = TREE / "tests/support/tryton_till.py"
    done = subprocess.run(
        [str(python), str(script), settings], capture_output=True, text=True, env=environ, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


def check(shop: Shop, found: dict[str, Any], more: int = 0) -> None:
    """Each certified, and the machine has certified as many, and so many `more`: each once."""
    sales = found["sales"]
    assert {state for _, state, *_ in sales} == {"certified"}, [sale for sale in sales if sale[1] != "certified"][:3]
    certified = shop.machines[0].certified()[:SALES]
    assert sorted((entry["number"], entry["code"]) for entry in certified) == sorted((s[0], s[2]) for s in sales)
    assert shop.machines[0].counters[1] == SALES + more
    assert sum(sale[3] for sale in sales) + more * 118 == shop.x_with(SALES + more)["total_ttc"]


class LossyLine:
    """Between a till and a server: some of the connections are cut before the request is through, some after it, before the answer."""

    def __init__(self, base: str, lost: float) -> None:
        self._base, self._lost, self._random = base, lost, random.Random(48)
        self.cut = 0

    def __call__(self, request: Request) -> Answer | None:
        fate = self._random.random()
        self.cut += fate < self._lost
        if fate < self._lost / 2:
            return None
        found = passed_on(request, self._base)
        return None if fate < self._lost else found


def test_in_the_shop(own_shop: Shop, tryton: Path) -> None:
    """Straight to the box: the code and the QR code stand on the sale and on its receipt; what mcfd refuses stands on the sale, which is opened, corrected
    and certified; one that is certified is not opened again. Change in cash is taken off the cheque. What is no fault of the sale waits, cannot be opened either, and is certified by itself once
    that is put right."""
    found = sold(tryton, f"http://127.0.0.1:{own_shop.port}", own_shop.key(), wrong=True)
    state, error, again = found["wrong"]
    assert again == ["certified", None]
    assert state == "refused"
    assert error.startswith("INVALID_REQUEST")
    assert error.count("items[0].name") == 1
    assert "certified" in found["opened"]
    assert found["state"] == "done"
    kind, ticket = found["ticket"]
    assert kind == "html"
    assert "<svg" in ticket
    assert all(qr.startswith("BFSECEF01;") for *_, qr in found["sales"])
    waits, error, opened, later = found["locked out"]
    assert (waits, later) == ("waiting", "certified"), error
    assert error.startswith("UNAUTHENTICATED")
    assert "certified" in opened
    assert found["change"] == ["certified", None]
    state, error = found["taxed twice"]
    assert state == "refused", error  # the levy would be certified as if it were price with VAT
    assert "one tax" in error
    check(own_shop, found, more=3)
    assert {each["method"]: each["amount"] for each in own_shop.get("reports/x").json()["by_payment"]}["B"] == 118


def test_from_anywhere(tmp_path: Path, tryton: Path) -> None:
    """Through the relay, behind a line that drops three connections in ten: each sale is certified once."""
    site = RelaySite(tmp_path)
    try:
        asyncio.run(site.up())
        line = LossyLine(site.relays[0].base, 0.3)
        with answering(line) as url:
            found = sold(tryton, url, site.key("seller"))
        assert line.cut
        check(site.shop, found)
    finally:
        site.down()
