"""Headquarters' database lost, or put back to an earlier day: complete again without a command, on both databases, over both ways in."""

import contextlib
import shutil
import sqlite3
import time

import psycopg
import pytest
from support.hq.nats_site import STREAMS, Site
from support.hq.paper_box import PaperBox
from support.hq.running import RunningHq
from support.hq.store import KINDS
from support.receivers.headquarters import until
from support.receivers.nats_server import NIM, OTHER

pytestmark = pytest.mark.long

EARLY, LATE = 5, 10
A_WEEK_AGO = "UPDATE book SET received_at = received_at - 604800000"


class SqliteFile:
    def __init__(self, directory) -> None:
        self.file, self.copy = directory / "hq.sqlite3", directory / "backup"
        self.url = f"sqlite:///{self.file}"

    def keep(self) -> None:
        shutil.copy(self.file, self.copy)

    def lose(self) -> None:
        for file in self.file.parent.glob("hq.sqlite3*"):
            file.unlink()

    def put_back(self) -> None:
        self.lose()
        shutil.copy(self.copy, self.file)
        with contextlib.closing(sqlite3.connect(self.file, isolation_level=None)) as connection:
            connection.execute(A_WEEK_AGO)

    def rows(self, query):
        if not self.file.exists():
            return []
        connection = sqlite3.connect(f"file:{self.file}?mode=ro", uri=True)
        try:
            return connection.execute(query).fetchall()
        except sqlite3.OperationalError:  # it is being made
            return []
        finally:
            connection.close()


class PostgresDatabase:
    def __init__(self, cluster) -> None:
        self.cluster, self.url = cluster, cluster.database()
        self.name = self.url.partition("?")[0].rpartition("/")[2]

    def _tell(self, *orders) -> None:
        with psycopg.connect(self.cluster.dsn("postgres"), autocommit=True) as connection:
            for order in orders:
                connection.execute(order)

    def keep(self) -> None:
        self._tell(f"CREATE DATABASE {self.name}_copy TEMPLATE {self.name} STRATEGY {self.cluster.strategy}")

    def lose(self) -> None:
        self._tell(f"DROP DATABASE {self.name} WITH (FORCE)", f"CREATE DATABASE {self.name}")

    def put_back(self) -> None:
        self._tell(
            f"DROP DATABASE {self.name} WITH (FORCE)",
            f"ALTER DATABASE {self.name}_copy RENAME TO {self.name}",
        )
        with psycopg.connect(self.url) as connection:
            connection.execute(A_WEEK_AGO)

    def rows(self, query):
        try:
            with psycopg.connect(self.url) as connection:
                return connection.execute(query).fetchall()
        except psycopg.errors.UndefinedTable:
            return []


@pytest.fixture(params=KINDS)
def database(request, tmp_path):
    if request.param == "sqlite":
        yield SqliteFile(tmp_path)
        return
    postgres = PostgresDatabase(request.getfixturevalue("cluster"))
    yield postgres
    postgres.cluster.drop(postgres.url)


class OverHttps:
    """Two shops that send by HTTPS, and again what their presence is asked for."""

    def __init__(self, directory, database) -> None:
        self.hq = RunningHq(directory / "hq", database.url)
        self.boxes = [PaperBox(NIM), PaperBox(OTHER)]

    async def up(self) -> None:
        """Nothing but headquarters itself."""

    async def send(self, *sent) -> None:
        for box, closure in sent:
            assert self.hq.post("/closures", box.sent(closure)).status_code in (200, 409)

    async def speak(self) -> None:
        for box in self.boxes:
            answer = self.hq.post("/presence", box.sent_presence(box.presence()))
            for wanted in answer.json()["replay"]:
                await self.send(*((box, one) for one in box.closures if one.z_number >= wanted["from_z"]))

    async def down(self) -> None:
        self.hq.kill()


class OverNats(Site):
    """The same by JetStream, with the keys and files as shipped; no box gets a question, the stream is read again."""

    def __init__(self, directory, database) -> None:
        super().__init__(directory, database.url)

    async def up(self) -> None:
        await self.server.up(*STREAMS)
        self.senders = {box.nim: await self.shop(which) for which, box in enumerate(self.boxes)}

    async def send(self, *sent) -> None:
        for box, closure in sent:
            await super().send(self.senders[box.nim], box, closure)

    async def speak(self) -> None:
        """Its stream has everything: headquarters need not hear of anybody."""

    async def down(self) -> None:
        for client in self.senders.values():
            await client.close()
        self.hq.kill()
        self.server.kill()
        self.store.close()


@pytest.fixture(params=[OverHttps, OverNats])
async def site(request, tmp_path, database):
    running = request.param(tmp_path, database)
    await running.up()
    running.hq.start()
    for box in running.boxes:
        running.hq.cli("boxes", "add", box.nim, "--public-key", box.key.public)
    yield running
    await running.down()


async def holds(site, database, most):
    """Within the time that a test has: every Z of both shops up to that one."""
    expected = [(nim, z) for nim in (NIM, OTHER) for z in range(1, most + 1)]

    async def complete():
        if database.rows("SELECT nim, z FROM closure ORDER BY nim, z") == expected:
            return True
        await site.speak()
        return False

    await until(complete, deadline=60, every=0.2)


@pytest.mark.parametrize("loss", ["dropped", "put back"])
async def test_complete_again(request, site, database, loss, record_property):
    """Boxes and keys come back from the register's copy, closures from the stream or from the boxes; no finding is left."""
    await site.send(*((box, box.close()) for _ in range(EARLY) for box in site.boxes))
    await holds(site, database, EARLY)
    copy = site.hq.config.parent / "register.json"
    await until(lambda: copy.exists() and all(box.key.public in copy.read_text() for box in site.boxes), deadline=60)
    site.hq.stop()
    if loss == "put back":
        database.keep()
        site.hq.start()
        await site.send(*((box, box.close()) for _ in range(LATE - EARLY) for box in site.boxes))
        await holds(site, database, LATE)
        site.hq.stop()
        database.put_back()
    else:
        database.lose()
    began = time.monotonic()
    site.hq.start()
    await holds(site, database, LATE if loss == "put back" else EARLY)
    record_property("healed", (request.node.callspec.id, time.monotonic() - began))
    await site.speak()
    assert database.rows("SELECT kind FROM finding WHERE solved_at IS NULL") == []
