"""A server that ends by itself ends its program with an error; a certificate that it cannot use is named."""

import asyncio
import socket
from pathlib import Path

import pytest
import uvicorn

from common.front import BadCertificate, check_pair
from common.http_server import HttpServer, ServerConfig


class Broken(uvicorn.Server):
    async def serve(self, sockets=()):
        self.started = True
        for each in sockets:
            each.close()
        await asyncio.sleep(0.02)
        raise RuntimeError("broken")


async def test_a_server_that_ends_by_an_error(monkeypatch):
    monkeypatch.setattr(uvicorn, "Server", Broken)
    server = HttpServer(lambda *_: None, ServerConfig(port=0))
    await server.start()
    with pytest.raises(RuntimeError, match="broken"):
        await server.until(asyncio.Event())
    await server.stop()


async def test_a_server_whose_address_is_taken_can_be_stopped():
    """As a program does that ends for that reason."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        server = HttpServer(lambda *_: None, ServerConfig(port=other.getsockname()[1]))
        with pytest.raises(OSError, match="in use"):
            await server.start()
        await server.stop()


async def test_a_server_has_started_when_its_start_returns(monkeypatch):
    """Its program then reports that it is ready."""
    started = asyncio.Event()

    class Slow(uvicorn.Server):
        async def serve(self, sockets=()):
            await asyncio.sleep(0.02)
            self.started = True
            started.set()
            for each in sockets:
                each.close()

    monkeypatch.setattr(uvicorn, "Server", Slow)
    server = HttpServer(lambda *_: None, ServerConfig(port=0))
    await server.start()
    assert started.is_set()
    await server.stop()


@pytest.mark.parametrize(
    ("content", "why"), [(None, "there is no such file"), (b"x\n", "no certificate with its private key")]
)
def test_a_certificate_that_cannot_be_used_is_named_with_the_reason(
    tmp_path: Path, content: bytes | None, why: str
) -> None:
    pem = tmp_path / "box.pem"
    if content is not None:
        pem.write_bytes(content)
    with pytest.raises(BadCertificate) as error:
        check_pair(pem, pem)
    assert str(error.value).startswith(f"{pem} with {pem}: {why}")
