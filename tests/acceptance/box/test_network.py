"""A shop's network is not always friendly: stuck sockets, slow headers, guessed keys, foreign pages. Over real sockets."""

from __future__ import annotations

import contextlib
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from support.cli.command import CONFIG, Command
from support.processor import within
from support.shop import NIM, Shop, invoice, running_shop
from support.till import fresh

from common.front_config import error_files, program

STUCK = 25
HEAD = f"POST /v1/mcf/{NIM}/certify HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Behind HAProxy, as on any network."""
    server = {"host": "0.0.0.0", "allow_plain_lan": True}  # noqa: S104  on purpose
    with Shop(tmp_path_factory.mktemp("shop"), config={"server": server}) as shop:
        yield shop.start()


@contextlib.contextmanager
def connected(shop: Shop, count: int = 1, address: str = "127.0.0.1") -> Iterator[list[socket.socket]]:
    """Plain TCP connections, from one of the addresses of the loopback."""
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(
                socket.create_connection(("127.0.0.1", shop.port), timeout=15, source_address=(address, 0))
            )
            for _ in range(count)
        ]


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


def test_a_till_certifies_beside_25_stuck_sockets(shop: Shop) -> None:
    """Connected and silent, half a header, half a body: 25 of each, from one address, and a till at the same address is served
    as fast as alone."""
    assert shop.certify(invoice(fresh())).status_code == httpx.codes.OK  # the address has shown a key
    with connected(shop, 3 * STUCK) as peers:
        for peer in peers[STUCK : 2 * STUCK]:
            peer.sendall(HEAD.encode())
        for peer in peers[2 * STUCK :]:
            peer.sendall(f"{HEAD}{authorization(shop)}Content-Length: 5000\r\n\r\n{{".encode())
        with within(3, *shop.pids):
            for _ in range(3):
                assert shop.certify(invoice(fresh())).status_code == httpx.codes.OK


def authorization(shop: Shop) -> str:
    return f"Authorization: {shop.headers()['Authorization']}\r\n"


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
