"""Whether HAProxy is in front of the tills, and how it is set up; what strangers send is in `bench.siege`, played by test_siege.py."""

import contextlib
import socket
import subprocess
from pathlib import Path

import httpx
import pytest
from support.cli.command import CONFIG, Command
from support.shop import invoice, running_shop
from support.till import fresh

from common.front_config import error_files, program


def answer(peer: socket.socket) -> str:
    """All that comes until the other side closes, or the head and body of one answer."""
    received = b""
    with contextlib.suppress(TimeoutError, ConnectionResetError):
        while piece := peer.recv(65536):
            received += piece
            head, end, body = received.partition(b"\r\n\r\n")
            length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
            if end and length and len(body) >= int(length[0].split(b":")[1]):
                break
    return received.decode()


@pytest.mark.parametrize("proxy", ["always", "never"])
def test_the_configuration_decides_whether_haproxy_is_in_front(tmp_path: Path, proxy: str) -> None:
    """`always` on loopback too; `never` beyond it as well. A till notices nothing but a connection that is refused or not."""
    host = "127.0.0.1" if proxy == "always" else "0.0.0.0"  # noqa: S104  on purpose
    server = {"host": host, "allow_plain_lan": True, "proxy": proxy}
    with running_shop(tmp_path, config={"server": server}) as shop:
        assert shop.certify(invoice(fresh())).status_code == httpx.codes.OK
        with socket.create_connection(("127.0.0.1", shop.port), timeout=15) as peer:
            peer.sendall(b"no HTTP\r\n\r\n")
            assert ("<h1>400 Bad request" in answer(peer)) is (proxy == "always")


def test_the_configuration_of_haproxy_is_shown(tmp_path: Path) -> None:
    """`mcfd proxy` prints what HAProxy accepts, with the address of the tills."""
    box = Command(tmp_path, f"[server]\nhost = '127.0.0.1'\nport = 8481\n{CONFIG}")
    output = box.run("proxy", "--config", str(box.config)).stdout
    assert "bind 127.0.0.1:8481" in output
    for name, content in error_files().items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "haproxy.cfg").write_text(output.replace("/run/mcfd-front", str(tmp_path)))
    haproxy = program()
    assert haproxy
    subprocess.run([haproxy, "-c", "-q", "-f", str(tmp_path / "haproxy.cfg")], check=True)


def test_a_host_that_has_no_address_is_a_line(tmp_path: Path) -> None:
    """Where it stands, and why; the start says the same."""
    box = Command(tmp_path, f"[server]\nhost = '256.1.1.1'\nallow_plain_lan = true\n{CONFIG}")
    assert box.refused(2, "proxy") == f"{box.config}: server.host: Name or service not known"
