"""The programs that docs/clients.md names, run as they stand."""

import base64
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import get_args

import httpx
import pytest
from support.ports import free_port
from support.shop import BIN, Shop, wait_for

from daemon.settings.model import EventType

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "clients.md").read_text()


def program(name: str) -> str:
    """One of the programs that the page names."""
    assert f"(receivers/{name})" in PAGE
    return (DOCS / "receivers" / name).read_text()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    with Shop(tmp_path) as shop:
        yield shop


def run(name: str, shop: Shop) -> str:
    environ = {**os.environ, "MCFD_KEY": shop.key(), "MCFD_URL": f"http://127.0.0.1:{shop.port}"}
    done = subprocess.run(
        [sys.executable, "-c", program(name)], env=environ, stdout=subprocess.PIPE, text=True, check=True, timeout=60
    )
    return done.stdout


RECEIVERS = {
    "webhook_avepay.py": ("any text will do", {"x-avepay-signature": "sha256=00"}),
    "webhook_standard.py": (
        "whsec_" + base64.b64encode(b"k" * 32).decode(),
        {"webhook-id": "1", "webhook-timestamp": "1", "webhook-signature": "v1,AAAA"},
    ),
}
"""Each with its secret, and headers of somebody who does not have it."""


@pytest.mark.long
@pytest.mark.parametrize("name", RECEIVERS)
def test_the_till_and_the_receiver(shop: Shop, tmp_path: Path, name: str) -> None:
    """The till certifies with the published client, and the receiver prints the event of it, verified; a forged one is refused."""
    text, forged = RECEIVERS[name]
    secret = tmp_path / "erp.secret"
    secret.write_text(f"{text}\n")
    port = free_port()
    environ = {**os.environ, "SECRET": text, "PORT": str(port)}
    shop.more_config = f'\n[[webhook]]\nurl = "http://127.0.0.1:{port}/"\nsecret_file = "{secret}"\nretry_max = 1.0\n'
    heard = tmp_path / "heard"
    with heard.open("w") as out:
        receiver = subprocess.Popen(
            [str(BIN / "python"), "-c", program(name)], env=environ, stdout=out, stderr=subprocess.DEVNULL
        )
        try:
            shop.start()
            code, total, mode = run("avepay_till.py", shop).split()
            assert (len(code), total, mode) == (24, "15000", "live")
            wait_for(lambda: f"cert.issued {code}" in heard.read_text(), "the event at the receiver")
            assert httpx.post(f"http://127.0.0.1:{port}/", content=b"{}", headers=forged).status_code == 401
        finally:
            with suppress(ProcessLookupError):
                receiver.send_signal(signal.SIGTERM)
            receiver.wait(10)


def test_the_page_names_every_event() -> None:
    """As the configuration knows them."""
    for kind in get_args(EventType):
        assert f"`{kind}`" in PAGE
