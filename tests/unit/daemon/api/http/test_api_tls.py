from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import socket
import ssl
from pathlib import Path

import pytest
from support.api import INVOICE, LIVE_KEY, NIM, Serve, Served, UseCases, until
from support.key_updates import shaken
from support.processor import within
from support.receivers.authority import Authority

from daemon.api.http.server import HttpServer
from edge import gate
from edge.admission import ConnectionLimits


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def serial(served: Served, authority: Authority) -> int:
    """Of the certificate that a new connection is shown."""
    from cryptography import x509  # noqa: PLC0415  for this alone

    pem = ssl.get_server_certificate(("127.0.0.1", served.port), ca_certs=str(authority.path))
    return x509.load_pem_x509_certificate(pem.encode()).serial_number


async def test_a_till_that_trusts_the_authority_is_served(serve: Serve, authority: Authority) -> None:
    """HTTPS from certificate and key files, checked against their authority."""
    pem = authority.issue()
    served = await serve(config={"tls_cert": pem, "tls_key": pem})
    context = ssl.create_default_context(cafile=authority.path)
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port, ssl=context)
    writer.write(f"GET /v1/me HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {LIVE_KEY}\r\n\r\n".encode())
    assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    writer.close()
    await writer.wait_closed()
    assert (await served.post(json=INVOICE)).status_code == 200


async def test_a_server_that_ends_before_it_listens_is_told_at_the_start(
    serve: Serve, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the certificate goes in the moment after it was looked at: `start` raises what ended the server."""
    pem = Path(shutil.copy(authority.issue(), tmp_path / "box.pem"))
    monkeypatch.setattr(HttpServer, "check_tls", lambda _: pem.unlink())
    with pytest.raises(FileNotFoundError):
        await serve(config={"tls_cert": pem, "tls_key": pem})


async def test_a_renewed_certificate_is_shown_without_a_restart(
    serve: Serve, authority: Authority, tmp_path: Path
) -> None:
    """`reload_tls` after the files were replaced; the connection that is open goes on."""
    pem = tmp_path / "box.pem"
    shutil.copy(authority.issue(), pem)
    served = await serve(config={"tls_cert": pem, "tls_key": pem})
    before = await asyncio.to_thread(serial, served, authority)
    assert (await served.get("/v1/me")).status_code == 200
    shutil.copy(authority.issue(), pem)
    served.server.reload_tls()
    assert await asyncio.to_thread(serial, served, authority) != before
    assert (await served.get("/v1/me")).status_code == 200


async def test_a_handshake_that_never_ends_meets_its_deadline(
    serve: Serve, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connected, and then silent: closed, while tills are served."""
    monkeypatch.setattr(gate, "HANDSHAKE_SECONDS", 0.3)
    pem = authority.issue()
    served = await serve(config={"tls_cert": pem, "tls_key": pem})
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    assert (await served.post(json=INVOICE)).status_code == 200
    with within(3):
        assert await reader.read() == b""
    writer.close()


async def test_deadlines_hold_under_tls_too(serve: Serve, authority: Authority) -> None:
    """A body that stalls is answered 408 and closed."""
    pem = authority.issue()
    served = await serve(
        limits=ConnectionLimits(stall_seconds=0.2, linger_seconds=0.2), config={"tls_cert": pem, "tls_key": pem}
    )
    context = ssl.create_default_context(cafile=authority.path)
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port, ssl=context)
    head = f"POST /v1/mcf/{NIM}/certify HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {LIVE_KEY}\r\n"
    writer.write(f"{head}Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{{".encode())
    with within(3):
        assert b"REQUEST_TIMEOUT" in await reader.read()
    writer.close()
    await writer.wait_closed()


async def test_who_spoke_no_http_is_told_and_hung_up_on(serve: Serve, authority: Authority) -> None:
    """At once: TLS has no half of a connection that could stay open for what the peer still sends."""
    pem = authority.issue()
    served = await serve(limits=ConnectionLimits(linger_seconds=600), config={"tls_cert": pem, "tls_key": pem})
    context = ssl.create_default_context(cafile=authority.path)
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port, ssl=context)
    writer.write(b"GET / HTTP/1.1\r\n\r\n")
    with within(3):
        async with asyncio.timeout(60):
            assert b"400" in (await reader.read()).splitlines()[0]
    writer.close()
    await writer.wait_closed()


def asking(served: Served, authority: Authority, path: str) -> ssl.SSLSocket:
    """A connection with one question, whose end is an error unless it is said (close_notify)."""
    context = ssl.create_default_context(cafile=authority.path)
    plain = socket.create_connection(("127.0.0.1", served.port), timeout=60)
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
    till = context.wrap_socket(plain, server_hostname="127.0.0.1", suppress_ragged_eofs=False)
    till.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return till


def read_all(till: ssl.SSLSocket) -> bytes:
    with till:
        return b"".join(iter(lambda: till.recv(1 << 16), b""))


async def test_a_connection_that_is_kept_open_holds_up_no_stop(serve: Serve, authority: Authority) -> None:
    """A till that looks at its idle connection with its next sale only: it is told that the connection ends, and not waited for."""
    pem = authority.issue()
    served = await serve(config={"tls_cert": pem, "tls_key": pem, "grace": 60.0})
    till = await asyncio.to_thread(asking, served, authority, "/health/live")
    assert (await asyncio.to_thread(till.recv, 1 << 16)).startswith(b"HTTP/1.1 200")
    with within(2):
        await served.server.stop()
    assert await asyncio.to_thread(read_all, till) == b""


async def test_the_stop_lets_an_answer_out_that_is_read_slowly(
    serve: Serve, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that is written as far as the application goes: the end is said after its last byte."""
    monkeypatch.setattr(gate, "SHUTDOWN_SECONDS", 60.0)
    pem = authority.issue()
    served = await serve(config={"tls_cert": pem, "tls_key": pem, "grace": 60.0})
    served.server._sockets[0].setsockopt(
        socket.SOL_SOCKET, socket.SO_SNDBUF, 4096
    )  # as a network's, and not a loopback's megabytes
    till = await asyncio.to_thread(asking, served, authority, "/schema/openapi.json")
    (connection,) = served.server._server._connections()
    await until(lambda: connection.cycle is not None and connection.cycle.response_complete)
    stopping = asyncio.ensure_future(served.server.stop())
    await asyncio.sleep(0.2)
    assert not stopping.done()
    head, _, body = (await asyncio.to_thread(read_all, till)).partition(b"\r\n\r\n")
    assert b"content-length: %d\r\n" % len(body) in head
    await stopping


async def test_plain_http_to_the_tls_port_is_turned_away(serve: Serve, authority: Authority) -> None:
    """It never reaches a handler."""
    pem = authority.issue()
    served = await serve(config={"tls_cert": pem, "tls_key": pem})
    assert b"200" not in await served.send(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")


async def renewing(served: Served, updates: int) -> None:
    """A sale that follows so many updates of the client's keys in the same moment, up to the end of its connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    sender = await shaken((reader, writer))
    body = json.dumps(INVOICE).encode()
    lines = (
        "Host: localhost",
        f"Authorization: Bearer {LIVE_KEY}",
        "Connection: close",
        "Content-Type: application/json",
    )
    head = "\r\n".join((f"POST /v1/mcf/{NIM}/certify HTTP/1.1", *lines, f"Content-Length: {len(body)}", "", ""))
    records = [
        *(sender.update(answered=True) for _ in range(updates)),
        sender.record(head.encode()),
        sender.record(body),
    ]
    writer.write(b"".join(records))
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(60):
            while await reader.read(1 << 16):
                pass
    writer.close()


async def test_keys_may_be_renewed_now_and_then(
    serve: Serve, authority: Authority, usecases: UseCases, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What follows is read as any other, however its records lie in what arrives."""
    monkeypatch.setattr(gate, "SHUTDOWN_SECONDS", 0.5)  # for a goodbye that does not come
    pem = authority.issue()
    served = await serve(config={"tls_cert": pem, "tls_key": pem})
    await renewing(served, 30)
    assert [told[0] for _, told in usecases.calls] == [INVOICE]


async def test_records_that_hold_nothing_end_the_connection(
    serve: Serve, authority: Authority, usecases: UseCases
) -> None:
    """Nothing behind a hundred of them is read; who sends data is served."""
    pem = authority.issue()
    served = await serve(config={"tls_cert": pem, "tls_key": pem})
    await renewing(served, 100)
    assert usecases.calls == []
    assert (await served.post(json=INVOICE)).status_code == 200


async def written(served: Served, pieces: list[bytes]) -> bytes:
    """What comes back when each piece is a TLS record of its own, until the connection's end."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port, ssl=context)
    told = b""
    with contextlib.suppress(ConnectionError):
        for piece in pieces:
            writer.write(piece)
        async with asyncio.timeout(60):
            while more := await reader.read(1 << 16):
                told += more
    writer.close()
    return told


async def test_records_that_hold_next_to_nothing_end_the_connection(serve: Serve, authority: Authority) -> None:
    """A request in a hundred records of a byte each is not read to its end; one that is written line by line is answered."""
    pem = authority.issue()
    served = await serve(config={"tls_cert": pem, "tls_key": pem})
    lines = [b"GET /v1/me HTTP/1.1\r\n", b"Host: localhost\r\n", f"Authorization: Bearer {LIVE_KEY}\r\n".encode()]
    request = [*lines, *(b"X-%d: 1\r\n" % number for number in range(20)), b"Connection: close\r\n", b"\r\n"]
    assert (await written(served, request)).startswith(b"HTTP/1.1 200")
    assert not await written(served, [bytes([byte]) for byte in b"".join(request)])


async def test_a_record_in_crumbs_ends_the_connection(serve: Serve, authority: Authority) -> None:
    """The first record of a handshake, a byte in each packet, is not waited for to its end; in pieces of a packet's size any record is read."""
    pem = authority.issue()
    served = await serve(config={"tls_cert": pem, "tls_key": pem})
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(b"\x16\x03\x01\x40\x00\x01")
    told = asyncio.ensure_future(reader.read())
    async with asyncio.timeout(60):
        for _ in range(2_000):
            writer.write(b"\0")
            await asyncio.sleep(0.001)
            if told.done():
                break
    assert told.done()
    writer.close()
    assert (await served.post(json=INVOICE)).status_code == 200
