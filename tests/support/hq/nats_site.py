"""Headquarters as a process on a real nats-server, with two shops."""

import contextlib
import uuid
from pathlib import Path

from support.hq.paper_box import PaperBox
from support.hq.running import RunningHq
from support.receivers.nats_server import NIM, OTHER, NatsServer, NatsSite
from support.receivers.raw_nats import OpenServer, RawClient, raw_client
from support.shop import section

from common.wire.keys import PrivateKey, decode_seed
from common.wire.nats_pull import NatsOptions
from headquarters.store.store import HqStore

STREAMS = ("closures-one.json", "presence-one.json")


class Site:
    """A nats-server with its streams, two shops with their keys, and headquarters, on SQLite when no other database is named."""

    def __init__(self, directory: Path, url: str = "") -> None:
        self.clients: list = []
        """Closed at the end."""
        self.nats = NatsSite(directory / "nats")
        self.server = NatsServer(self.nats)
        self.database = directory / "hq.sqlite3"
        self.hq = RunningHq(directory / "hq", url or f"sqlite:///{self.database}", self.section)
        self.store = HqStore(self.hq.url)
        self.boxes = [
            PaperBox(nim, PrivateKey(decode_seed(file.read_text().strip())), seed=nim)
            for nim, file in ((NIM, self.nats.shop), (OTHER, self.nats.other_shop))
        ]

    @property
    def options(self) -> NatsOptions:
        """Of headquarters' own connection."""
        authority = self.nats.authority.path
        return NatsOptions(url=self.server.url, credentials_file=self.nats.reader, tls_ca=authority)

    @property
    def section(self) -> str:
        return section("[nats]", self.server.options(self.nats.reader))

    async def up(self) -> None:
        await self.server.up(*STREAMS, again_after=1)
        self.store.open()
        for box in self.boxes:
            self.add(box)

    def add(self, box: PaperBox) -> None:
        self.store.register.add(box.nim, box.key.public, now=1)

    async def raw(self, which: int = 0) -> RawClient:
        key = (self.nats.shop, self.nats.other_shop)[which]
        return await self._open_client(raw_client(self.server.url, key, self.nats.authority.path))

    async def _open_client(self, opening) -> RawClient:
        client = await opening
        self.clients.append(client)
        return client

    async def shop(self, which: int = 0):
        key = (self.nats.shop, self.nats.other_shop)[which]
        return await self._open_client(self.nats.connect(self.server.url, key))

    async def send(self, client, box: PaperBox, *closures) -> None:
        for closure in closures:
            headers, body = box.sent(closure)
            await publish(client, box.nim, headers, body)

    def stored_z(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        with self.store.database.read() as connection:
            for nim, z in connection.exec_driver_sql("SELECT nim, z FROM closure ORDER BY nim, z"):
                found.setdefault(nim, []).append(z)
        return found

    def findings(self) -> list[tuple[str, str]]:
        return [(finding.kind, finding.nim) for finding in self.store.findings.listed(is_open=True)]

    def heard(self) -> set[str]:
        return set(self.store.presences.latest())

    def counted(self) -> dict[str, int]:
        return {one.reason: one.count for one in self.store.evidence.counted("2020-01-01")}


async def publish(client, nim: str, headers: dict[str, str], body: bytes) -> None:
    """As the daemon does: the closure's id is the message's."""
    message_id = headers.get("webhook-id") or uuid.uuid4().hex
    await client.jetstream(timeout=60).publish(
        f"mcf.{nim}.closure", body, headers={**headers, "Nats-Msg-Id": message_id}
    )


@contextlib.asynccontextmanager
async def running(directory, url="", kind=None):
    site = Site(directory, url) if kind is None else kind(directory)
    try:
        await site.up()
        yield site
    finally:
        for client in site.clients:
            await client.close()
        site.hq.kill()
        site.server.kill()
        site.store.close()


class OpenSite(Site):
    """The same on a server without accounts, which hands on header blocks as they are."""

    def __init__(self, directory: Path) -> None:
        self.clients = []
        self.server = OpenServer(directory)
        self.database = directory / "hq.sqlite3"
        self.hq = RunningHq(directory / "hq", f"sqlite:///{self.database}", self.section)
        self.store = HqStore(self.hq.url)
        self.boxes = [PaperBox(NIM), PaperBox(OTHER)]

    @property
    def section(self) -> str:
        return section("[nats]", {"url": self.server.url})

    async def up(self) -> None:
        await self.server.up()
        self.store.open()
        for box in self.boxes:
            self.add(box)

    async def raw(self, which: int = 0) -> RawClient:
        del which
        return await self._open_client(raw_client(self.server.url))
