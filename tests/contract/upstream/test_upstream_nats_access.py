"""How a box comes in at a NATS server: certificates, credentials, what configurations say; real servers, real keys."""

import asyncio

import pytest
from nats_sending import changed, send, write_key
from support.receivers.authority import Authority
from support.receivers.nats_server import CONFIG, binary

from daemon.core.delivery import RetryLater
from daemon.upstream.options import Options


@pytest.fixture
def key(tmp_path):
    return write_key(tmp_path)


class TestEncryption:
    """Certificates are checked, and nothing is said in the clear beyond loopback."""

    async def test_unknown_authority(self, nats, tmp_path):
        """A certificate of somebody else's authority is not accepted."""
        stranger = Authority(tmp_path, "stranger")
        (outcome,) = await send(changed(nats.options, tls_ca=stranger.path))
        assert isinstance(outcome, RetryLater)
        assert "certificate" in outcome.error.lower()

    async def test_a_server_without_tls(self, key):
        """tls:// to a server that says it does not encrypt: nothing is sent, no name, no key."""
        content = bytearray()

        async def pretend(reader, writer):
            writer.write(b'INFO {"server_id":"x","version":"2.15.0","max_payload":1048576,"auth_required":true}\r\n')
            content.extend(await reader.read(4096))
            writer.close()

        server = await asyncio.start_server(pretend, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        (outcome,) = await send(Options(url=f"tls://127.0.0.1:{port}", key_files=key, timeout=60.0))
        assert outcome == RetryLater("the server does not encrypt")
        assert bytes(content) == b""
        server.close()


async def test_configurations_are_read(tmp_path):
    """The server accepts the files of config/nats as such, and refuses to start while placeholders stand for keys."""
    assert "sync_interval: always" in (CONFIG / "jetstream.conf").read_text()
    for conf in ("one.conf", "three.conf"):
        process = await asyncio.create_subprocess_exec(
            binary(), "-t", "-c", str(CONFIG / conf), env={"HQ_NAME": "hq-1"}, stderr=asyncio.subprocess.PIPE
        )
        _, complaint = await process.communicate()
        assert process.returncode == 1
        assert b"Not a valid public nkey" in complaint, complaint
