"""What Avahi is to tell the shop's network: where the box serves it, and nothing otherwise."""

from pathlib import Path
from xml.etree import ElementTree as ET

from daemon.app.status import FILE, announce
from daemon.settings import Server

LAN = Server(host="0.0.0.0", port=8443, tls="internal")  # noqa: S104  a shop's network


def records(folder: Path) -> dict[str, str]:
    service = ET.fromstring((folder / FILE).read_text()).find("service")  # noqa: S314  our own
    texts = dict(str(each.text).split("=") for each in service.findall("txt-record"))
    return {"type": service.findtext("type", ""), "port": service.findtext("port", ""), **texts}


def test_a_box_of_the_network_is_announced(tmp_path: Path) -> None:
    """Type, port, and whether it is HTTPS; without a folder of the unit nothing is written. A box that serves itself alone, and one that was told not to, is withdrawn."""
    announce(LAN, tmp_path)
    assert records(tmp_path) == {"type": "_mcfd._tcp", "port": "8443", "path": "/v1", "schema": "/schema", "tls": "1"}
    announce(LAN, None)
    for server in (Server(), Server(host="0.0.0.0", tls="internal", announce=False)):  # noqa: S104
        announce(Server(host="192.168.1.4", port=8480, allow_plain_lan=True), tmp_path)
        assert records(tmp_path)["tls"] == "0"
        for _ in range(2):
            announce(server, tmp_path)
            assert list(tmp_path.iterdir()) == []
