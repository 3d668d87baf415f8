"""Headquarters at scale: a JetStream cluster, PostgreSQL and instances of `mcfd-hq`, each a process that can be killed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import msgspec
import nats.errors
import nats.js.errors
import psycopg
from support.hq.paper_box import PaperBox
from support.hq.postgresql import Cluster
from support.hq.running import RunningHq
from support.receivers.nats_server import OTHER, NatsServer, NatsSite, add_stream, cluster

from bench.fleet.boxes import nim_of
from headquarters.store.register import Copy
from headquarters.store.store import Store

TESTS = Path(__file__).parents[2] / "tests"
TICKS = os.sysconf("SC_CLK_TCK")


class FleetSite:
    def __init__(
        self, directory: Path, servers: int, instances: int, *, cores: int, again_after: float, lasting: bool
    ) -> None:
        self.elsewhere = kept_to(cores)
        self._again_after = again_after
        self._regions = 0
        self.nats = NatsSite(directory / "nats")
        # One key for all boxes of the bench: ten thousand of them stand for their regions' leaf nodes.
        for what in ("closure", "presence", "ask"):
            self.nats.replacements[f'"mcf.{OTHER}.{what}"'] = f'"mcf.*.{what}"'
        self.servers: list[NatsServer] = cluster(self.nats) if servers > 1 else [NatsServer(self.nats)]
        self.postgresql = Cluster(lasting=lasting)
        self.postgresql.start()
        self.url = self.postgresql.database()
        section = {
            "url": self.urls,
            "credentials_file": str(self.nats.reader),
            "tls_ca": str(self.nats.authority.path),
        }
        extra = "[nats]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in section.items())
        self.instances = [RunningHq(directory / f"hq-{n}", self.url, extra) for n in range(instances)]
        self.peaks: list[int] = []

    @property
    def urls(self) -> str:
        return ",".join(server.url for server in self.servers)

    async def up(self) -> None:
        for server in self.servers:
            server.start()
        for server in self.servers:
            await server.wait(60)
        client = await self.nats.connect(self.servers[0].url)
        suffix = "three" if len(self.servers) > 1 else "one"
        await add_stream(client, f"closures-{suffix}.json", 60, self._again_after)
        await add_stream(client, f"presence-{suffix}.json", 60)
        await client.close()

    def add_boxes(self, count: int) -> None:
        """At once, as from a register that was copied."""
        rows: dict[str, Any] = {"box": [], "box_key": []}
        for number in range(count):
            box = PaperBox(nim_of(number))
            machine = box.nim.partition("-")[0]
            row: dict[str, Any] = {
                "label": "",
                "region": f"R{number % 13:02}",
                "closes_at": None,
                "usual_at": None,
                "usual_days": 0,
            }
            rows["box"].append({"machine": machine, "nim": box.nim, "added_at": 1} | row)
            key: dict[str, Any] = {
                "key_id": box.key.id,
                "line": box.key.public,
                "added_at": 1,
                "revoked_at": None,
            }
            rows["box_key"].append({"machine": machine} | key)
        store = Store(self.url)
        store.open()
        copy = msgspec.json.decode(msgspec.json.encode({"revision": 1, "rows": rows}), type=Copy)
        store.register.from_copy(copy, now=1)
        store.close()

    def region(self, **task: Any) -> Popen[str]:
        """Boxes of one region, ready to send; they begin when it is told to."""
        own = {"site": str(self.nats.directory), "ca": str(self.nats.authority.path), "key": str(self.nats.other_shop)}
        self._regions += 1
        spool = str(self.nats.directory / f"region-{self._regions}")
        task |= {**own, "urls": self.urls.split(","), "spool": spool, "cores": self.elsewhere}
        command = [sys.executable, "-m", "bench.fleet.boxes", json.dumps(task)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent)])}
        return Popen(command, stdin=PIPE, stdout=PIPE, text=True, env=environment)

    def count(self) -> int:
        """0 while the database is away."""
        try:
            with psycopg.connect(self.url, connect_timeout=3) as connection:
                row = connection.execute("SELECT count(*) FROM closure").fetchone()
        except psycopg.Error:
            return 0
        return int(row[0]) if row else 0

    def kill_instance(self, which: int) -> None:
        self._note(self.instances[which])
        self.instances[which].kill()
        self.instances[which].start()

    async def kill_leader(self) -> None:
        """The server that leads the stream CLOSURES; it is back a second later."""
        name = await self._leader()
        server = next(server for server in self.servers if server.name == name)
        server.kill()
        await asyncio.sleep(1)
        server.start()
        await server.wait(60)

    async def _leader(self) -> str:
        """While the cluster chooses one, nobody answers."""
        client = await connected(self)
        try:
            for _ in range(12):
                with contextlib.suppress(nats.errors.Error, nats.js.errors.Error):
                    cluster = (await client.jetstream(timeout=5).stream_info("CLOSURES")).cluster
                    if cluster is None or cluster.leader:
                        return cluster.leader if cluster else self.servers[0].name
                await asyncio.sleep(0.5)
        finally:
            await client.close()
        raise AssertionError("the stream has no leader")

    def kill_postgresql(self) -> None:
        self.postgresql.kill()
        self.postgresql.start()

    def _note(self, instance: RunningHq) -> None:
        self.peaks.append(peak_kib(instance.pid))

    def close(self) -> None:
        for instance in self.instances:
            if not instance.has_ended():
                self._note(instance)
            instance.kill()
        for server in self.servers:
            server.kill()
        self.postgresql.remove()


async def connected(site: FleetSite, who: Path | None = None) -> Any:
    """To any of the servers."""
    servers: Any = site.urls.split(",")
    return await site.nats.connect(servers, who)


def kept_to(cores: int) -> list[int]:
    """This process and all that it starts from now on are kept to so many cores; the other ones, for the boxes. 0: nobody is kept."""
    if not cores:
        return []
    own = sorted(os.sched_getaffinity(0))[:cores]
    os.sched_setaffinity(0, own)
    return [core for core in range(os.cpu_count() or 0) if core not in own]


def cpu_of_all(site: FleetSite) -> dict[str, float]:
    """Seconds of CPU so far of each part but the boxes."""
    return {
        "cluster": sum(cpu_seconds(server.pid) for server in site.servers),
        "headquarters": sum(cpu_seconds(instance.pid) for instance in site.instances),
        "PostgreSQL": site.postgresql.cpu_seconds(cpu_seconds),
    }


def peak_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


async def until(what: str, is_there: Callable[[], bool], deadline: float) -> float:
    """Seconds that it took."""
    began = time.monotonic()
    while not await asyncio.to_thread(is_there):
        assert time.monotonic() - began < deadline, f"{what}: not within {deadline:g} s"
        await asyncio.sleep(0.25)
    return time.monotonic() - began
