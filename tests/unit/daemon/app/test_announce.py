"""What Avahi is to tell the shop's network: where the box serves it, and nothing otherwise; what systemd shows."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from xml.etree import ElementTree as ET

import pytest

from common.language import NO_TEXT
from common.language.reasons import COUNTERS_DECREASED
from daemon.app.runtime import Runtime
from daemon.app.status import FILE, announce, status_line
from daemon.settings import Server

LAN = Server(host="0.0.0.0", port=8443, tls="internal")  # noqa: S104  a shop's network


def records(folder: Path) -> dict[str, str]:
    service = ET.fromstring((folder / FILE).read_text()).find("service")  # noqa: S314  our own
    texts = dict(str(each.text).split("=") for each in service.findall("txt-record"))
    return {"type": service.findtext("type", ""), "port": service.findtext("port", ""), **texts}


def test_a_box_of_the_network_is_announced(tmp_path: Path) -> None:
    """Type, port, and whether it is HTTPS; without a folder of the unit nothing is written. A box that serves itself alone, and one that is configured so, is withdrawn."""
    announce(LAN, tmp_path)
    assert records(tmp_path) == {"type": "_mcfd._tcp", "port": "8443", "path": "/v1", "schema": "/schema", "tls": "1"}
    announce(LAN, None)
    for server in (Server(), Server(host="0.0.0.0", tls="internal", announce=False)):  # noqa: S104
        announce(Server(host="192.168.1.4", port=8480, allow_plain_lan=True), tmp_path)
        assert records(tmp_path)["tls"] == "0"
        for _ in range(2):
            announce(server, tmp_path)
            assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("locale", "found"), [("fr_FR.UTF-8", "les compteurs"), ("en_US.UTF-8", "the machine's counters")]
)
def test_the_status_is_in_one_language(monkeypatch: pytest.MonkeyPatch, locale: str, found: str) -> None:
    """The line of `systemctl status` has what a person has to decide in the language of the rest of it."""
    monkeypatch.setenv("LC_ALL", locale)
    worker: Any = SimpleNamespace(book=SimpleNamespace(nim="EL02000015-1", mode="live"), obstacle=COUNTERS_DECREASED)
    runtime = SimpleNamespace(settings=SimpleNamespace(machine=()), workers=[worker], disk_trouble=lambda: NO_TEXT)
    assert f"mcfd machine settle ({found}" in status_line(cast("Runtime", runtime), "http://127.0.0.1:8480")
