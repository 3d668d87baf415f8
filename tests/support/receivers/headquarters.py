"""Headquarters of each kind, real ones: they come up, are killed, come back, and show what they hold."""

import asyncio
import base64
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, Self

import httpx
import nats.errors
from support.nursery import Child, warm
from support.ports import free_port
from support.receivers.nats_server import NatsServer, NatsSite, read_events
from support.shop import PLAIN

from daemon.upstream.options import Options, generate

RECEIVER = Path(__file__).with_name("receiver.py")


class Headquarters(Protocol):
    kind: str

    @property
    def options(self) -> Options: ...
    async def up(self) -> None: ...
    def kill(self) -> None:
        """SIGKILL; what it took stays taken."""
        ...

    async def events(self) -> list[dict]:
        """What arrived, in order, each id once."""
        ...


class Keys:
    """`v1`: a shared secret; `v1a`: a key pair as `mcfd upstream keygen` makes it."""

    def __init__(self, directory: Path, version: str) -> None:
        self.setting = {"v1": "secret_file", "v1a": "key_file"}[version]
        self.file = directory / f"upstream-{version}.key"
        if version == "v1":
            self.public = "whsec_" + base64.b64encode(os.urandom(32)).decode()
            self.file.write_text(self.public + "\n")
        else:
            self.public = generate(self.file)


class HttpHeadquarters:
    kind = "https"

    def __init__(self, directory: Path, version: str = "v1", cert: Path | None = None, **options) -> None:
        self.keys = Keys(directory, version)
        self._book = directory / "headquarters.jsonl"
        self._cert = cert
        self._port = free_port()
        self._options = options
        self._log = directory / "headquarters.log"
        self._process: subprocess.Popen | Child | None = None

    @property
    def url(self) -> str:
        return f"{'https' if self._cert else 'http'}://127.0.0.1:{self._port}/closures"

    @property
    def options(self) -> Options:
        return Options(**({"url": self.url, "key_files": (self.keys.file,), "timeout": 60.0} | self._options))

    async def up(self) -> None:
        self._start()
        await until(self._is_ready, every=0.002)

    def __enter__(self) -> Self:
        """For tests without a loop."""
        asyncio.run(self.up())
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _start(self) -> None:
        arguments = ["--port", str(self._port), "--book", str(self._book), "--key", self.keys.public]
        if self._cert:
            arguments += ["--cert", str(self._cert)]
        self._log.write_text("")
        if nursery := warm("receiver"):
            self._process = nursery.start("receiver", arguments, os.environ, stdout=self._log, stderr=self._log)
        else:
            with self._log.open("ab") as text:
                self._process = subprocess.Popen([sys.executable, str(RECEIVER), *arguments], stdout=text, stderr=text)

    def _is_ready(self) -> bool:
        text = self._log.read_text()
        assert self._process.poll() is None, text
        return "ready " in text

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(60)

    async def script(self, *steps: dict) -> None:
        """What it does with the next requests, one step each (receiver.py)."""
        async with httpx.AsyncClient(trust_env=False, timeout=60, verify=PLAIN) as client:
            answer = await client.post(self.url.replace("/closures", "/_next"), json=steps)
            assert answer.status_code == 204

    def attempts(self) -> list[dict]:
        """Every request: id, status, at, headers, body, and whether it was kept as new."""
        if not self._book.exists():
            return []
        # A kill may leave half a line at the end: that request was never answered.
        return [json.loads(line) for line in self._book.read_text().splitlines() if line.endswith("}")]

    async def events(self) -> list[dict]:
        return [json.loads(attempt["body"]) for attempt in self.attempts() if attempt["kept"]]


class NatsHeadquarters:
    kind = "nats"

    def __init__(self, directory: Path, jwt: bool = False, **options) -> None:
        self.site = NatsSite(directory / "nats", jwt)
        self.server = NatsServer(self.site)
        self._options = options
        self._streams: tuple[str, ...] = ("closures-one.json", "presence-one.json")
        """Still to be made."""

    @property
    def options(self) -> Options:
        own = {"url": self.server.url, "credentials_file": self.site.shop, "tls_ca": self.site.authority.path}
        return Options(**(own | {"timeout": 60.0} | self._options))

    @property
    def pid(self) -> int:
        return self.server.pid

    async def up(self) -> None:
        await self.server.up(*self._streams)
        self._streams = ()

    def kill(self) -> None:
        self.server.kill()

    @contextlib.asynccontextmanager
    async def reading(self):
        client = await self.site.connect(self.server.url)
        try:
            yield client
        finally:
            await client.close()

    async def events(self) -> list[dict]:
        try:
            async with self.reading() as client:
                return await read_events(client)
        except (OSError, nats.errors.Error):  # just killed or just up: it shows nothing for the moment
            return []


@contextlib.asynccontextmanager
async def started(server):
    """Any of them: up, and gone afterwards."""
    await server.up()
    try:
        yield server
    finally:
        server.kill()


KINDS: dict[str, Callable[[Path], Headquarters]] = {
    "https-v1": lambda directory: HttpHeadquarters(directory, "v1"),
    "https-v1a": lambda directory: HttpHeadquarters(directory, "v1a"),
    "nats": NatsHeadquarters,
}


def upstream_section(headquarters: Headquarters, **settings) -> str:
    """The `[upstream]` of a configuration file that sends there; `settings` go on top, as `retry_max=0.2`."""
    options = headquarters.options
    values = {"kind": headquarters.kind, "url": options.url}
    if isinstance(headquarters, HttpHeadquarters):
        values[headquarters.keys.setting] = str(headquarters.keys.file)
    if options.credentials_file:
        values["credentials_file"] = str(options.credentials_file)
    if options.tls_ca:
        values["tls_ca"] = str(options.tls_ca)
    return "\n".join(["[upstream]", *(f"{name} = {json.dumps(value)}" for name, value in (values | settings).items())])


def closures(events: list[dict]) -> list[dict]:
    """Without the months and years that were closed between them."""
    return [event for event in events if event["type"].startswith("bf.mcfd.closure.")]


def z_numbers(events: list[dict], nim: str) -> list[int]:
    """The Z of one machine, in order of arrival."""
    return [int(event["subject"]) for event in events if event["source"] == f"/mcf/{nim}"]


async def until(condition, deadline: float = 60.0, every: float = 0.02) -> None:
    """Wait for what `condition()` says; it may be a coroutine function."""
    end = time.monotonic() + deadline
    while True:
        value = condition()
        if asyncio.iscoroutine(value):
            value = await value
        if value:
            return
        assert time.monotonic() < end, f"not within {deadline:g} s"
        await asyncio.sleep(every)
