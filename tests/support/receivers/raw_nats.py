"""What no NATS client would send, by a holder of a shop's key; and a nats-server without accounts, which hands it on as it is."""

import ssl
import subprocess
import time
from urllib.parse import urlsplit

import nats
import nats.errors
from support.ports import free_port
from support.receivers.nats_server import add_stream, binary

from common.wire.keys import read_credentials
from common.wire.nats_client import Client

BLOCKS = (
    b"NATS/1.0 \xff\xfe\xfd: b\r\n\r\n",
    b"NATS/1.0 \xff\xfe\xfd: b\r\nwebhook-id: x\r\n\r\n",
    b"NATS/1.0 999 \xff\xff\r\n\r\n",
    b"NATS/1.0 503\r\n\r\n",
    b"NATS/1.0 204 EOB\r\nNats-Num-Pending: 0\r\n\r\n",
    b"NATS/1.0 409 Consumer Deleted\r\n\r\n",
    b"NATS/1.0 100 FlowControl Request\r\n\r\n",
    b"NATS/1.0\r\n\r\n",
    b"NATS/1.0\r\n: empty\r\n\r\n",
    b"NATS/1.0\r\n\xe9t\xe9: \xff\r\n\r\n",
    b"NATS/1.0\r\nno colon\r\n\r\n",
    b"NATS/1.0\r\nwebhook-signature: \xff\xff\r\n\r\n",
    b"NATS/1.0\r\nNats-Sequence: x\r\nNats-Subject: \xff\r\nNats-Time-Stamp: never\r\n\r\n",
    b"NATS/1.0\r\nX: y",
    b"NATS/1.0",
    b"N",
    b"",
    b"\x00\xff" * 40,
    b"NATS/1.0\r\n" + b"a: b\r\n" * 15_000 + b"\r\n",
    b"NATS/1.0\r\nwebhook-id: " + b"x" * 120_000 + b"\r\n\r\n",
)
"""Header blocks."""
REPLIES = (b"\xff\xfe", b"$JS.ACK.CLOSURES.headquarters.1.1.1.1.0", b"mcf.x.closure", b"a\x0bb", b"..", b"x" * 900)


class RawClient(Client):
    """Sends bytes as they are."""

    def send(self, subject: str, block: bytes, data: bytes, reply: bytes = b"") -> None:
        size = (len(block), len(block) + len(data))
        self._write(b"HPUB %b %b %d %d\r\n%b%b\r\n" % (subject.encode(), reply, *size, block, data))


async def raw_client(url: str, key=None, ca=None) -> RawClient:
    client = RawClient()
    signer = None if key is None else read_credentials(key, "nats")
    await client.open(urlsplit(url), signer, ssl.create_default_context(cafile=ca), "raw")
    return client


class OpenServer:
    """nats-server as somebody sets it up in five minutes: no accounts, no keys."""

    def __init__(self, directory) -> None:
        self.port = free_port()
        self.url = f"nats://127.0.0.1:{self.port}"
        options = ["-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", str(directory / "store")]
        log = (directory / "server.log").open("ab")
        self._process = subprocess.Popen([binary(), *options], stdout=log, stderr=log)
        log.close()

    async def up(self) -> None:
        deadline = time.monotonic() + 60
        while True:
            try:
                client = await nats.connect(self.url, allow_reconnect=False)
            except (OSError, nats.errors.Error):
                assert time.monotonic() < deadline
                continue
            for file in ("closures-one.json", "presence-one.json"):
                await add_stream(client, file, again_after=1)
            await client.close()
            return

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
